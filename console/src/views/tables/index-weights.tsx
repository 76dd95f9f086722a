/** The shares that the indexes of a table have of the searches that name none, set together. */
import { useState } from 'preact/hooks';

import { client } from '../../calls';
import { IndexService } from '../../contract/souk/index/v1/index_pb';
import type { Index } from '../../contract/souk/search/v1/index_pb';
import { Problem } from '../../problem';
import { useAttempt } from './attempt';
import { text } from './words';

const indexes = client(IndexService);

export const IndexWeights = ({ own, onChanged }: { own: readonly Index[]; onChanged: () => void }) => {
  /** What is typed, by the names of the indexes, until it is set. */
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>({});
  const { waiting, error, run } = useAttempt();
  const changed = own.flatMap(({ index, weight }) => {
    const value = typed[index];
    return value === undefined || value === String(weight) ? [] : [{ index, weight: Math.trunc(Number(value)) }];
  });
  const submit = (event: Event): void => {
    event.preventDefault();
    const [first] = changed;
    if (first === undefined) return;
    void run(async (options) => {
      await indexes.updateIndex({ index: first.index, weights: changed }, options);
      setTyped({});
      onChanged();
    });
  };
  return (
    <section class="panel part" aria-label={text('weights')}>
      <h3>{text('weights')}</h3>
      <p class="quiet">{text('weightsWhat')}</p>
      <Problem error={error} />
      <form class="row" onSubmit={submit}>
        {own.map(({ index, weight }) => (
          <label key={index}>
            {index}
            <input
              type="number"
              required
              min={0}
              max={100}
              value={typed[index] ?? String(weight)}
              onInput={(event) => setTyped({ ...typed, [index]: event.currentTarget.value })}
            />
          </label>
        ))}
        <button type="submit" class="main" disabled={waiting || changed.length === 0}>
          {text('setWeights')}
        </button>
      </form>
    </section>
  );
};
