/** Any table and index: those of the services, and those that users have made. */
import { useMemo } from 'preact/hooks';

import { address, link } from '../address';
import { useAnswer } from '../answer';
import { client } from '../calls';
import { IndexService } from '../contract/souk/index/v1/index_pb';
import type { TableSummary } from '../contract/souk/table/v1/table_service_pb';
import { TableService } from '../contract/souk/table/v1/table_service_pb';
import { Problem } from '../problem';
import { IndexCreate } from './tables/index-create';
import { IndexPanel } from './tables/index-panel';
import { IndexWeights } from './tables/index-weights';
import { ResourceRows } from './tables/resource-rows';
import { RESOURCES } from './tables/resources';
import { Schema } from './tables/schema';
import './tables/style.css';
import { UserRows } from './tables/user-rows';
import { text } from './tables/words';

const indexes = client(IndexService);
const tables = client(TableService);

/** How often it is looked for new tables and indexes, in milliseconds. */
const LOOK_MS = 5000;
/** Most tables of users that a server has. */
const TABLES_MAX = 256;

/** A table of users: what it is, and its rows. */
const UserTable = ({ name }: { name: string }) => {
  const answer = useAnswer(name, (options) => tables.getTable({ table: name }, options));
  const table = answer.value?.table;
  return (
    <>
      <section class="panel part" aria-label={text('schema')}>
        <h3>{text('schema')}</h3>
        <Problem error={answer.error} again={answer.again} />
        {table !== undefined && <Schema table={table} />}
      </section>
      {table !== undefined && (
        <section class="panel part" aria-label={text('rows')}>
          <h3>{text('rows')}</h3>
          <UserRows table={name} columns={table.key} />
        </section>
      )}
    </>
  );
};

/** A table that a service declares. */
const ServiceTable = ({ name }: { name: string }) => {
  const resources = Object.hasOwn(RESOURCES, name) ? RESOURCES[name] : undefined;
  return (
    <>
      <section class="panel part" aria-label={text('schema')}>
        <h3>{text('schema')}</h3>
        <p>{text('contract')}</p>
      </section>
      <section class="panel part" aria-label={text('rows')}>
        <h3>{text('rows')}</h3>
        {resources === undefined ? <p>{text('notBrowsed')}</p> : <ResourceRows table={name} resources={resources} />}
      </section>
    </>
  );
};

const Tables = () => {
  const known = useAnswer('indexes', (options) => indexes.listIndexes({}, options), LOOK_MS);
  const created = useAnswer('tables', (options) => tables.listTables({ pageSize: TABLES_MAX }, options), LOOK_MS);
  const { values } = address.value;
  const chosen = values['table'] ?? (values['index'] ?? '').split('.')[0] ?? '';
  const ofUsers: readonly TableSummary[] = created.value?.tables ?? [];
  const isOfUsers = ofUsers.some((table) => table.name === chosen);
  const ofServices = useMemo(() => {
    const all = new Set(known.value?.indexes.map((index) => index.table));
    for (const { name } of ofUsers) all.delete(name);
    return [...all];
  }, [known.value, created.value]);
  const own = known.value?.indexes.filter((index) => index.table === chosen) ?? [];
  const entry = (name: string) => (
    <li key={name}>
      <a href={link('tables', { table: name })} aria-current={name === chosen ? 'true' : undefined}>
        {name}
      </a>
    </li>
  );
  const ready = created.value !== undefined || created.error !== undefined;
  return (
    <>
      <h1>{text('title')}</h1>
      <Problem error={known.error} again={known.again} />
      <Problem error={created.error} again={created.again} />
      <div class="beside">
        <nav class="panel list" aria-label={text('tables')}>
          <h2>{text('ofService')}</h2>
          <ul>{ofServices.map(entry)}</ul>
          {ofUsers.length > 0 && <h2>{text('ofUsers')}</h2>}
          <ul>{ofUsers.map((table) => entry(table.name))}</ul>
        </nav>
        <div>
          {chosen === '' ? <p>{text('choose')}</p> : <h2>{chosen}</h2>}
          {own.map((index) => (
            <IndexPanel key={index.index} name={index.index} first={index} onDropped={known.again} />
          ))}
          {own.length > 1 && <IndexWeights key={`weights ${chosen}`} own={own} onChanged={known.again} />}
          {chosen !== '' && known.value !== undefined && <IndexCreate key={`new ${chosen}`} table={chosen} own={own} onCreated={known.again} />}
          {chosen !== '' && ready && (isOfUsers ? <UserTable key={chosen} name={chosen} /> : <ServiceTable key={chosen} name={chosen} />)}
        </div>
      </div>
    </>
  );
};

export default Tables;
