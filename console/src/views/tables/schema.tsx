/** What a table is that users created: its key, declared columns, options and secondary indexes; and how large it is. */
import { useState } from 'preact/hooks';

import { useAnswer } from '../../answer';
import { client } from '../../calls';
import { Role } from '../../contract/souk/auth/v1/access_pb';
import type { Table } from '../../contract/souk/table/v1/table_pb';
import { ColumnType, KeyType, SecondaryIndexState } from '../../contract/souk/table/v1/table_pb';
import { TableService } from '../../contract/souk/table/v1/table_service_pb';
import { bytes, count } from '../../format';
import { Problem } from '../../problem';
import { Scroll } from '../../scroll';
import { text } from './words';

const tables = client(TableService);

/** Stored bytes of a part, such that a table is one part. */
const ONE_PART = 1n << 60n;

const stateName = (state: SecondaryIndexState): string => {
  if (state === SecondaryIndexState.BUILDING) return text('building');
  return state === SecondaryIndexState.FAILED ? text('failed') : text('ready');
};

/** How large a table is, which is found out by reading it. */
const Size = ({ table }: { table: string }) => {
  const [asked, setAsked] = useState(false);
  const answer = useAnswer(asked ? table : undefined, (options) => tables.getSplitPoints({ table, bytes: ONE_PART }, options));
  const splits = answer.value?.splits;
  const sum = (part: 'rows' | 'bytes'): bigint => (splits ?? []).reduce((all, split) => all + split[part], 0n);
  return (
    <div class="row">
      <button type="button" disabled={answer.waiting} onClick={() => (asked ? answer.again() : setAsked(true))}>
        {text('measure')}
      </button>
      <span class="quiet">{splits === undefined ? text('measureHint') : text('measured', { rows: count(sum('rows')), bytes: bytes(sum('bytes')) })}</span>
      <Problem error={answer.error} />
    </div>
  );
};

export const Schema = ({ table }: { table: Table }) => (
  <>
    <Scroll label={text('schema')}>
      <table>
        <thead>
          <tr>
            <th>{text('column')}</th>
            <th>{text('type')}</th>
            <th>{text('key')}</th>
          </tr>
        </thead>
        <tbody>
          {table.key.map((column, place) => (
            <tr key={column.name}>
              <td>{column.name}</td>
              <td>{KeyType[column.type]?.toLowerCase()}</td>
              <td>{[place === 0 ? text('partition') : text('yes'), column.autoIncrement ? text('increment') : ''].filter(Boolean).join(', ')}</td>
            </tr>
          ))}
          {table.columns.map((column) => (
            <tr key={column.name}>
              <td>{column.name}</td>
              <td>{ColumnType[column.type]?.toLowerCase()}</td>
              <td class="quiet">{text('declared')}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
    <dl class="facts">
      <dt>{text('versions')}</dt>
      <dd>{count(table.maxVersions || 1)}</dd>
      <dt>{text('ttl')}</dt>
      <dd>{table.timeToLive === undefined ? text('forever') : `${count(table.timeToLive.seconds)} s`}</dd>
      <dt>{text('updates')}</dt>
      <dd>{table.allowUpdate === false ? text('no') : text('yes')}</dd>
      <dt>{text('transactions')}</dt>
      <dd>{table.transactions ? text('yes') : text('no')}</dd>
      <dt>{text('owners')}</dt>
      <dd>{table.owners.map(({ role, column }) => `${Role[role]?.toLowerCase()}: ${column}`).join(', ') || text('no')}</dd>
    </dl>
    {table.indexes.length > 0 && (
      <Scroll label={text('secondary')}>
        <table>
          <thead>
            <tr>
              <th>{text('secondary')}</th>
              <th>{text('columns')}</th>
              <th>{text('included')}</th>
              <th>{text('state')}</th>
            </tr>
          </thead>
          <tbody>
            {table.indexes.map((index) => (
              <tr key={index.name}>
                <td>{index.name}</td>
                <td>{index.columns.join(', ')}</td>
                <td>{index.included.join(', ')}</td>
                <td>{stateName(index.state)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
    )}
    <Size table={table.name} />
  </>
);
