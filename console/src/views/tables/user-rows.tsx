/** Rows of a table that users created: by key, and page by page in the order of the keys. */
import { toJson } from '@bufbuild/protobuf';
import { useEffect, useState } from 'preact/hooks';

import { address, change } from '../../address';
import { useAnswer } from '../../answer';
import { client } from '../../calls';
import type { Row } from '../../contract/souk/table/v1/row_pb';
import { RowSchema } from '../../contract/souk/table/v1/row_pb';
import type { KeyColumn } from '../../contract/souk/table/v1/table_pb';
import { KeyType } from '../../contract/souk/table/v1/table_pb';
import { TableService } from '../../contract/souk/table/v1/table_service_pb';
import { count } from '../../format';
import { Problem } from '../../problem';
import type { Value } from '../../queries';
import { Scroll } from '../../scroll';
import { shown } from '../../values';
import { parsed, written } from './keys';
import { text } from './words';

const tables = client(TableService);
const SIZE = 20;

/** The key that the address names: a list of what was typed. */
const typedKey = (columns: readonly KeyColumn[]): string[] | undefined => {
  try {
    const key: unknown = JSON.parse(address.value.values['key'] ?? '');
    return Array.isArray(key) && key.length === columns.length ? key.map(String) : undefined;
  } catch {
    return undefined;
  }
};

const keyText = (row: Row): string => row.key.map(written).join(' · ');

const KeyForm = ({ columns, onKey }: { columns: readonly KeyColumn[]; onKey: (key: string[]) => void }) => {
  const asked = typedKey(columns);
  const [typed, setTyped] = useState<string[]>(asked ?? columns.map(() => ''));
  const [wrong, setWrong] = useState<(string | undefined)[]>([]);
  const askedText = JSON.stringify(asked);
  useEffect(() => {
    if (asked !== undefined) setTyped(asked);
  }, [askedText]);
  const submit = (event: Event): void => {
    event.preventDefault();
    const values = columns.map((column, place) => parsed(column.type, typed[place] ?? ''));
    const problems = values.map((value) => (typeof value === 'string' ? value : undefined));
    setWrong(problems);
    if (problems.every((problem) => problem === undefined)) onKey(typed);
  };
  return (
    <form class="row" onSubmit={submit}>
      {columns.map((column, place) => (
        <label key={column.name}>
          {column.name} ({KeyType[column.type]?.toLowerCase()})
          <input
            value={typed[place] ?? ''}
            aria-invalid={wrong[place] !== undefined}
            onInput={(event) => setTyped(typed.map((old, other) => (other === place ? event.currentTarget.value : old)))}
          />
          {wrong[place] !== undefined && <span class="bad">{wrong[place]}</span>}
        </label>
      ))}
      <button class="main" type="submit">
        {text('find')}
      </button>
    </form>
  );
};

export const UserRows = ({ table, columns }: { table: string; columns: readonly KeyColumn[] }) => {
  const typed = typedKey(columns);
  const values = typed?.map((one, place) => parsed(columns[place]?.type ?? KeyType.STRING, one));
  const key = values?.every((value) => typeof value !== 'string') === true ? (values as Value[]) : undefined;
  const keyName = JSON.stringify(typed);
  const one = useAnswer(key === undefined ? undefined : `${table} ${keyName}`, (options) => tables.getRow({ table, key: key ?? [] }, options));
  // The tokens of the pages that were gone through; the last is that of the page that is shown.
  const [tokens, setTokens] = useState<string[]>([]);
  const page = useAnswer(`${table} ${tokens.at(-1) ?? ''}`, (options) =>
    tables.rangeRows({ table, pageSize: SIZE, pageToken: tokens.at(-1) ?? '' }, options),
  );
  const names = [...new Set(page.value?.rows.flatMap((row) => Object.keys(row.columns)) ?? [])].sort();
  const next = page.value?.nextPageToken ?? '';
  return (
    <>
      <h4>{text('byKey')}</h4>
      <KeyForm
        columns={columns}
        onKey={(key) => {
          change({ key: JSON.stringify(key) });
          if (JSON.stringify(key) === keyName) one.again();
        }}
      />
      <Problem error={one.error} again={one.again} />
      {one.error === undefined && !one.old && one.value?.row !== undefined && (
        <pre data-row={keyName}>{JSON.stringify(toJson(RowSchema, one.value.row), null, 2)}</pre>
      )}
      <h4>{text('browse')}</h4>
      <Problem error={page.error} again={page.again} old={page.old} />
      {page.value?.rows.length === 0 && <p>{text('noRows')}</p>}
      {page.value !== undefined && page.value.rows.length > 0 && (
        <Scroll label={text('rows')}>
          <table data-rows>
            <thead>
              <tr>
                <th>{text('key')}</th>
                {names.map((name) => (
                  <th key={name}>{name}</th>
                ))}
                <th class="number">{text('revision')}</th>
              </tr>
            </thead>
            <tbody>
              {page.value.rows.map((row) => (
                <tr key={keyText(row)}>
                  <td>
                    <button type="button" class="plain" onClick={() => change({ key: JSON.stringify(row.key.map(written)) })}>
                      {keyText(row)}
                    </button>
                  </td>
                  {names.map((name) => (
                    <td key={name} class="cell">
                      {shown(row.columns[name])}
                    </td>
                  ))}
                  <td class="number">{count(row.revision)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
      <div class="row">
        <button type="button" disabled={tokens.length === 0} onClick={() => setTokens([])}>
          {text('firstPage')}
        </button>
        <button type="button" disabled={tokens.length === 0} onClick={() => setTokens(tokens.slice(0, -1))}>
          {text('previous')}
        </button>
        <button type="button" disabled={next === ''} onClick={() => setTokens([...tokens, next])}>
          {text('next')}
        </button>
      </div>
    </>
  );
};
