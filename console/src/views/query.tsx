/** Queries of any index: put together by forms or as JSON, run, explained, and shown as other programs make them. */
import type { DescMessage, Message, MessageShape } from '@bufbuild/protobuf';
import { fromJson, toJson } from '@bufbuild/protobuf';
import type { CallOptions } from '@connectrpc/connect';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { address, change } from '../address';
import { useAnswer } from '../answer';
import { client } from '../calls';
import { IndexService } from '../contract/souk/index/v1/index_pb';
import type { Profile, Total } from '../contract/souk/search/v1/search_pb';
import { SearchSchema, TotalRelation } from '../contract/souk/search/v1/search_pb';
import { count } from '../format';
import { texts } from '../language';
import { Problem } from '../problem';
import { violations } from '../reasons';
import { Scroll } from '../scroll';
import { credentials } from '../session';
import { Calls } from './query/calls';
import { Editor } from './query/editor';
import { MessageForm } from './query/form';
import type { Json, JsonObject } from './query/json';
import { deepest, isObject } from './query/json';
import { ProfileTree } from './query/profile';
import { requestOf, rpcOf } from './query/schema';
import './query.css';

const text = texts({
  en: {
    title: 'Query',
    index: 'Index',
    form: 'Form',
    json: 'JSON',
    run: 'Run',
    profile: 'Tell how it ran',
    search: 'search',
    broken: 'This isn’t a search yet: {why}',
    unformed: 'What is written isn’t JSON of a search, so there is no form of it. It is kept as JSON: {why}',
    total: '{count} hits in all',
    least: 'at least {count} hits in all',
    shown: '{count} shown',
    took: 'answered in {ms} ms',
    hits: 'Hits',
    score: 'Score',
    hit: 'Hit',
    none: 'No hits.',
    next: 'Next page',
    aggregations: 'Aggregations',
    waiting: 'Asking…',
  },
  zh: {
    title: '查询',
    index: '索引',
    form: '表单',
    json: 'JSON',
    run: '执行',
    profile: '显示执行过程',
    search: '搜索',
    broken: '这还不是有效的搜索：{why}',
    unformed: '所写内容不是搜索的 JSON，无法显示为表单。内容已保留为 JSON：{why}',
    total: '共 {count} 条命中',
    least: '至少 {count} 条命中',
    shown: '显示 {count} 条',
    took: '{ms} 毫秒内返回',
    hits: '命中',
    score: '得分',
    hit: '命中项',
    none: '没有命中。',
    next: '下一页',
    aggregations: '聚合',
    waiting: '查询中…',
  },
});

const indexes = client(IndexService);

const BEGIN: JsonObject = { query: { bool: { must: [{ match_all: {} }] } }, total: { exact: true } };

// Older pages kept what was written in the browser, where others may read it.
try {
  localStorage.removeItem('souk.query.draft');
} catch {
  // Where nothing may be kept, nothing was.
}

/** What was written last, held while the page is open: it may tell what only its writer may know, and is gone when they sign out. */
let draft: string | undefined;
credentials.subscribe((caller) => {
  if (caller === undefined) draft = undefined;
});

const pretty = (value: Json): string => JSON.stringify(value, null, 2);

/** What a text says, or why it says nothing. */
const read = (written: string): { search: JsonObject } | { why: string } => {
  try {
    const search: Json = JSON.parse(written) as Json;
    fromJson(SearchSchema, search);
    return isObject(search) ? { search } : { why: '' };
  } catch (error) {
    return { why: error instanceof Error ? error.message : String(error) };
  }
};

/** The JSON of a text, whether it is a search or not. */
const parsed = (written: string): JsonObject | undefined => {
  try {
    const value: Json = JSON.parse(written) as Json;
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
};

/** What all answers to searches have in common. */
interface Found extends Message {
  readonly hits: readonly { readonly score?: number }[];
  readonly nextPageToken: string;
  readonly total?: Total;
  readonly profile?: Profile;
}

/** A hit in short: its resource, in one line. */
const short = (hit: JsonObject): string => JSON.stringify(hit['resource'] ?? hit['row'] ?? hit).slice(0, 300);

const Hits = ({ found, output }: { found: Found; output: DescMessage }) => {
  const answer = useMemo(() => toJson(output, found as MessageShape<DescMessage>, { useProtoFieldName: true }) as JsonObject, [found]);
  const hits = (Array.isArray(answer['hits']) ? answer['hits'] : []).filter(isObject);
  return (
    <>
      {hits.length === 0 ? (
        <p>{text('none')}</p>
      ) : (
        <Scroll label={text('hits')}>
          <table class="hits">
            <thead>
              <tr>
                <th class="number">#</th>
                <th class="number">{text('score')}</th>
                <th>{text('hit')}</th>
              </tr>
            </thead>
            <tbody>
              {hits.map((hit, at) => (
                <tr key={at}>
                  <td class="number">{at + 1}</td>
                  <td class="number">{typeof hit['score'] === 'number' ? hit['score'].toPrecision(4) : ''}</td>
                  <td>
                    <details>
                      <summary>
                        <code>{short(hit)}</code>
                      </summary>
                      <pre>{pretty(hit)}</pre>
                    </details>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
      {isObject(answer['aggregations']) && Object.keys(answer['aggregations']).length > 0 && (
        <section aria-labelledby="aggregations">
          <h2 id="aggregations">{text('aggregations')}</h2>
          <pre tabIndex={0}>{pretty(answer['aggregations'])}</pre>
        </section>
      )}
    </>
  );
};

const Query = () => {
  const { values } = address.value;
  const listed = useAnswer('indexes', (options) => indexes.listIndexes({}, options));
  const all = listed.value?.indexes ?? [];
  const index = all.find(({ index }) => index === (values['index'] ?? 'orders')) ?? all[0];
  const rpc = index === undefined ? undefined : rpcOf(index.table);
  const asJson = values['mode'] === 'json';

  const ran = values['s'];
  const addressed = (): JsonObject | undefined => (ran === undefined ? undefined : parsed(ran));
  const [written, setWritten] = useState(() => pretty(addressed() ?? parsed(draft ?? '') ?? BEGIN));
  const write = (next: string): void => {
    draft = next;
    setWritten(next);
  };
  // The address has gone back to another search.
  const own = useRef(ran);
  useEffect(() => {
    if (ran === own.current) return;
    own.current = ran;
    const other = addressed();
    if (other !== undefined) setWritten(pretty(other));
  }, [ran]);
  // Whoever signs in goes on with what is written, whoever signs out leaves nothing of it.
  const caller = credentials.value;
  const before = useRef(caller);
  useEffect(() => {
    if (before.current !== undefined && caller === undefined) setWritten(pretty(addressed() ?? BEGIN));
    before.current = caller;
  }, [caller]);
  const now = read(written);
  const loose = parsed(written);
  const [round, setRound] = useState(0);
  const run = (): void => {
    if (!('search' in now)) return;
    own.current = JSON.stringify(now.search);
    change({ s: own.current });
    setRound((before) => before + 1);
  };
  const search = addressed();
  const answer = useAnswer(
    search === undefined || index === undefined ? undefined : JSON.stringify([round, index.index, ran]),
    async (options) => {
      if (rpc === undefined || index === undefined || search === undefined) throw new Error('nothing is asked before the indexes are known');
      const services = client(rpc.service) as unknown as Record<string, (request: Message, options: CallOptions) => Promise<Message>>;
      const call = services[rpc.method.localName];
      if (call === undefined) throw new Error(`${rpc.method.name} isn't an RPC`);
      const began = performance.now();
      const found = (await call(fromJson(rpc.method.input, requestOf(index, search)), options)) as Found;
      return { found, output: rpc.method.output, tookMs: performance.now() - began };
    },
  );
  const told = answer.error === undefined ? [] : violations(answer.error).map((one) => ({ ...one, field: (one.field ?? '').replace(/^search\.?/, '') }));
  // Of what was sent, as long as that is what is written.
  const current = 'search' in now && JSON.stringify(now.search) === ran;
  const wrong = current ? told : [];
  const places = new Map<string, string[]>();
  for (const { field, description = '' } of wrong) {
    const path = deepest(loose ?? {}, field);
    places.set(path, [...(places.get(path) ?? []), path === field ? description : `${field}: ${description}`]);
  }
  const found = answer.value?.found;
  const set = (next: JsonObject): void => write(pretty(next));
  const why = 'why' in now ? now.why : undefined;
  return (
    <>
      <h1>{text('title')}</h1>
      <Problem error={listed.error} again={listed.again} />
      <form
        onSubmit={(event) => {
          event.preventDefault();
          run();
        }}
      >
        <div class="row">
          <label>
            {text('index')}
            <select value={index?.index ?? ''} onChange={(event) => change({ index: event.currentTarget.value === 'orders' ? '' : event.currentTarget.value })}>
              {all.map(({ index }) => (
                <option key={index} value={index}>
                  {index}
                </option>
              ))}
            </select>
          </label>
          {(['form', 'json'] as const).map((mode) => (
            <label class="check" key={mode}>
              <input type="radio" name="mode" checked={asJson === (mode === 'json')} onChange={() => change({ mode: mode === 'json' ? 'json' : '' })} />
              {text(mode)}
            </label>
          ))}
          <label class="check">
            <input
              type="checkbox"
              checked={loose?.['profile'] === true}
              disabled={loose === undefined}
              onChange={(event) => {
                const { profile: _, ...rest } = loose ?? {};
                set(event.currentTarget.checked ? { ...rest, profile: true } : rest);
              }}
            />
            {text('profile')}
          </label>
          <button type="submit" class="main" disabled={why !== undefined || index === undefined}>
            {text('run')}
          </button>
        </div>
        <div class="halves">
          <div>
            {asJson || loose === undefined ? (
              <>
                {!asJson && <p class="warn">{text('unformed', { why: why ?? '' })}</p>}
                <Editor
                  value={written}
                  fields={index?.fields ?? []}
                  wrong={wrong}
                  problem={why === undefined ? undefined : text('broken', { why })}
                  change={write}
                  run={run}
                />
              </>
            ) : (
              <div class="form">
                {why !== undefined && <p class="warn">{text('broken', { why })}</p>}
                <MessageForm
                  desc={SearchSchema}
                  value={loose}
                  path=""
                  label={text('search')}
                  known={{ fields: index?.fields ?? [], wrong: places }}
                  change={set}
                />
              </div>
            )}
          </div>
          <div>
            <Problem error={answer.error} again={answer.again} old={answer.old} />
            {answer.waiting && search !== undefined && <p class="quiet">{text('waiting')}</p>}
            {found !== undefined && answer.value !== undefined && (
              <>
                <p role="status">
                  {found.total !== undefined &&
                    `${text(found.total.relation === TotalRelation.AT_LEAST ? 'least' : 'total', { count: count(found.total.value) })}, `}
                  {text('shown', { count: count(found.hits.length) })}, {text('took', { ms: answer.value.tookMs.toFixed(1) })}
                </p>
                {found.profile !== undefined && <ProfileTree profile={found.profile} />}
                <Hits found={found} output={answer.value.output} />
                {found.nextPageToken !== '' && search !== undefined && current && !answer.old && (
                  <button
                    type="button"
                    onClick={() => {
                      const { skip: _, ...rest } = search;
                      const next = { ...rest, page_token: found.nextPageToken };
                      own.current = JSON.stringify(next);
                      write(pretty(next));
                      change({ s: own.current });
                    }}
                  >
                    {text('next')}
                  </button>
                )}
              </>
            )}
          </div>
        </div>
      </form>
      {rpc !== undefined && index !== undefined && 'search' in now && (
        <Calls rpc={rpc} request={requestOf(index, now.search)} program={values['as'] ?? ''} />
      )}
    </>
  );
};

export default Query;
