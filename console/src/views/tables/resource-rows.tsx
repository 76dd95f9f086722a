/** Rows of a service's table: by id, and page by page in the order of the ids. */
import { useEffect, useMemo, useState } from 'preact/hooks';

import { address, change, pageOf, paged } from '../../address';
import { useAnswer } from '../../answer';
import { Pager } from '../../pager';
import type { SortInit } from '../../pages';
import { Places, readPage } from '../../pages';
import { Problem } from '../../problem';
import type { Resource, Resources } from './resources';
import { text } from './words';

const SIZES = [10, 50, 100];
const BY_KEY: SortInit[] = [{ kind: { case: 'primaryKey', value: {} } }];

const Whole = ({ row }: { row: Resource }) => (
  <details class="whole">
    <summary>
      <code>{row.id}</code>
    </summary>
    <pre>{JSON.stringify(row.json, null, 2)}</pre>
  </details>
);

export const ResourceRows = ({ table, resources }: { table: string; resources: Resources }) => {
  const { values } = address.value;
  const key = values['key'] ?? '';
  const page = pageOf(values);
  const size = SIZES.find((one) => String(one) === values['size']) ?? 10;
  const [typed, setTyped] = useState(key);
  useEffect(() => setTyped(key), [key]);
  const one = useAnswer(key === '' ? undefined : `${table} ${key}`, (options) => resources.get(key, options));
  const places = useMemo(() => new Places(), []);
  const all = useAnswer(`${table} ${size} ${page}`, (options) =>
    readPage(resources.search, { sort: BY_KEY }, page, size, places.of(`${table} ${size}`), options),
  );
  const submit = (event: Event): void => {
    event.preventDefault();
    change({ key: typed.trim() });
    if (typed.trim() === key) one.again();
  };
  return (
    <>
      <form class="row" onSubmit={submit}>
        <label class="grow">
          {text('byKey')}
          <input value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
        </label>
        <button class="main" type="submit">
          {text('find')}
        </button>
        {key !== '' && (
          <button type="button" onClick={() => change({ key: '' })}>
            {text('close')}
          </button>
        )}
      </form>
      <Problem error={one.error} again={one.again} />
      {one.error === undefined && !one.old && one.value !== undefined && <pre data-row={key}>{JSON.stringify(one.value.json, null, 2)}</pre>}
      <h4>{text('browse')}</h4>
      <Problem error={all.error} again={all.again} old={all.old} />
      {all.value?.hits.map((row) => <Whole key={row.id} row={row} />)}
      {all.value?.hits.length === 0 && <p>{text('noRows')}</p>}
      <Pager
        page={page}
        pages={Math.ceil(Number(all.value?.total?.value ?? 0n) / size)}
        size={size}
        sizes={SIZES}
        onPage={(to) => change(paged(to))}
        onSize={(to) => change({ size: String(to), page: '' })}
      />
    </>
  );
};
