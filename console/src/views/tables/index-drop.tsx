/** Drops an index, once that has been confirmed. */
import { useRef } from 'preact/hooks';

import { client } from '../../calls';
import { IndexService } from '../../contract/souk/index/v1/index_pb';
import { Problem } from '../../problem';
import { useAttempt } from './attempt';
import { text } from './words';

const indexes = client(IndexService);

export const IndexDrop = ({ name, onDropped }: { name: string; onDropped: () => void }) => {
  const dialog = useRef<HTMLDialogElement>(null);
  const { waiting, error, run, forget } = useAttempt();
  const drop = async (): Promise<void> => {
    const dropped = await run(async (options) => {
      await indexes.deleteIndex({ index: name }, options);
    });
    if (!dropped) return;
    dialog.current?.close();
    onDropped();
  };
  return (
    <>
      <div class="row">
        <button type="button" onClick={() => dialog.current?.showModal()}>
          {text('dropIndex')}
        </button>
      </div>
      {/* While the drop is under way Escape doesn't close it: nobody would be told how that ends. */}
      <dialog
        ref={dialog}
        aria-labelledby={`drop-${name}`}
        closedby={waiting ? 'none' : 'closerequest'}
        onCancel={(event) => waiting && event.preventDefault()}
        onClose={forget}
      >
        <h4 id={`drop-${name}`}>{text('dropTitle', { name })}</h4>
        <p>{text('dropWhat')}</p>
        <Problem error={error} />
        <div class="row">
          <button type="button" class="bad" disabled={waiting} onClick={() => void drop()}>
            {text('dropNow')}
          </button>
          <button type="button" disabled={waiting} onClick={() => dialog.current?.close()}>
            {text('cancel')}
          </button>
        </div>
      </dialog>
    </>
  );
};
