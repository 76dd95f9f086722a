/** The shares that the indexes of a table have of the searches that name none, set together. */
import { useEffect, useState } from 'preact/hooks';

import { client } from '../../calls';
import { IndexService } from '../../contract/souk/index/v1/index_pb';
import type { Index } from '../../contract/souk/search/v1/index_pb';
import { Problem } from '../../problem';
import { useAttempt } from './attempt';
import { text } from './words';

const indexes = client(IndexService);

export const IndexWeights = ({ own, onChanged }: { own: readonly Index[]; onChanged: () => void }) => {
  /** What is typed, by the names of the indexes, until the indexes have it. */
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>({});
  useEffect(() => {
    const isThere = ([name, value]: [string, string]): boolean => own.some(({ index, weight }) => index === name && String(weight) === value);
    setTyped((before) => {
      const all = Object.entries(before);
      return all.some(isThere) ? Object.fromEntries(all.filter((one) => !isThere(one))) : before;
    });
  }, [own]);
  const { waiting, error, run } = useAttempt();
  const changed = own.flatMap(({ index, weight }) => {
    const value = typed[index];
    return value === undefined || value === String(weight) ? [] : [{ index, weight: Math.trunc(Number(value)) }];
  });
  const submit = (event: Event): void => {
    event.preventDefault();
    const [first] = changed;
    if (first === undefined) return;
    // As it is sent, so that it is known when it is read: whole numbers.
    setTyped({ ...typed, ...Object.fromEntries(changed.map(({ index, weight }) => [index, String(weight)])) });
    void run(async (options) => {
      await indexes.updateIndex({ index: first.index, weights: changed }, options);
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
