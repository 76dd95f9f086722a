/** What the server does at the moment: calls, their times, indexes, memory, and the changes as they come. */
import { durationMs } from '@bufbuild/protobuf/wkt';
import { useEffect, useRef, useState } from 'preact/hooks';

import { useAnswer } from '../answer';
import { client } from '../calls';
import { FiguresService } from '../contract/souk/figures/v1/figures_pb';
import { IndexService, type ListIndexesResponse } from '../contract/souk/index/v1/index_pb';
import { bytes, count, number, seconds } from '../format';
import { texts } from '../language';
import { Problem } from '../problem';
import { Scroll } from '../scroll';
import { credentials } from '../session';
import { Changes } from './live/changes';
import { Chart } from './live/chart';
import type { Calls } from './live/figures';
import { NAMES, between, calls, door, merged, quantile, sampled, total } from './live/figures';
import type { History, Lags, Point } from './live/history';
import { EMPTY, FAULTS, NO_LAGS, QUANTILES, grown, lagged } from './live/history';
import './live.css';

const text = texts({
  en: {
    title: 'Live',
    about: 'Of the process at this address, every two seconds while this page is seen. What services in other processes measure is fetched there; calls and indexes are those of all.',
    nothing: 'This process measures nothing (OTEL_SDK_DISABLED).',
    stopped: 'The figures stand still since {time}.',
    second: 'a second',
    writes: 'Writes',
    searches: 'Searches',
    reads: 'Other reads',
    failed: 'Failed calls',
    p50: 'Half of them within',
    p95: '95 of 100',
    p99: '99 of 100',
    writeTimes: 'Times of writes',
    searchTimes: 'Times of searches',
    rates: 'Calls a second',
    lag: 'How far searches are behind',
    memory: 'Memory',
    connections: 'Connections',
    active: 'Calls under way',
    cpu: 'Processor',
    cores: '{cores} cores',
    watches: 'Open watches',
    waiting: 'Searches that wait',
    methods: 'Calls by RPC',
    method: 'RPC',
    calls: 'Calls',
    since: 'Times are estimated from buckets, over the last ten seconds; calls are counted since this view was opened.',
    none: 'No calls yet.',
    indexes: 'Indexes',
    index: 'Index',
    documents: 'Documents',
    changes: 'Changes behind',
    age: 'Behind by',
    backends: 'Backends',
    serving: '{serving} of {processes} serve',
    now: 'now',
  },
  zh: {
    title: '实时',
    about: '此地址所在进程的指标，页面可见时每两秒更新。其他进程中的服务在各自进程中采集；调用与索引则覆盖全部服务。',
    nothing: '此进程未采集指标（OTEL_SDK_DISABLED）。',
    stopped: '指标自 {time} 起未更新。',
    second: '每秒',
    writes: '写入',
    searches: '搜索',
    reads: '其他读取',
    failed: '失败调用',
    p50: '50% 不超过',
    p95: '95%',
    p99: '99%',
    writeTimes: '写入耗时',
    searchTimes: '搜索耗时',
    rates: '每秒调用',
    lag: '搜索滞后',
    memory: '内存',
    connections: '连接数',
    active: '进行中的调用',
    cpu: '处理器',
    cores: '{cores} 核',
    watches: '打开的订阅',
    waiting: '等待中的搜索',
    methods: '按 RPC 统计',
    method: 'RPC',
    calls: '调用数',
    since: '耗时由分桶估算，取最近十秒；调用数自打开此视图起累计。',
    none: '暂无调用。',
    indexes: '索引',
    index: '索引',
    documents: '文档',
    changes: '落后变更数',
    age: '落后时间',
    backends: '后端',
    serving: '{processes} 个中 {serving} 个可用',
    now: '无',
  },
});

const EVERY_MS = 2000;

const figures = client(FiguresService);
const indexes = client(IndexService);

const Tile = ({ name, value, unit }: { name: string; value: string; unit?: string }) => (
  <div class="tile panel">
    <dt>{name}</dt>
    <dd>
      {value} {unit !== undefined && <small>{unit}</small>}
    </dd>
  </div>
);

const byMethod = (all: readonly Calls[]): ReadonlyMap<string, Calls[]> => {
  const found = new Map<string, Calls[]>();
  for (const one of all) found.set(one.method, [...(found.get(one.method) ?? []), one]);
  return found;
};

const Methods = ({ history }: { history: History }) => {
  const now = history.samples.at(-1);
  const oldest = history.samples[0];
  if (now === undefined || oldest === undefined) return null;
  const all = byMethod(between(history.first, calls(now)));
  const window = byMethod(between(calls(oldest), calls(now)));
  const rows = [...all]
    .map(([method, ours]) => ({
      method,
      count: merged(ours).count,
      failed: merged(ours.filter(({ code }) => FAULTS.has(code))).count,
      times: merged(window.get(method) ?? []),
    }))
    .filter((row) => row.count > 0)
    .sort((one, other) => other.count - one.count || one.method.localeCompare(other.method));
  return (
    <section>
      <h2 id="methods">{text('methods')}</h2>
      <p class="quiet">{text('since')}</p>
      {rows.length === 0 ? (
        <p>{text('none')}</p>
      ) : (
        <Scroll labelledBy="methods">
          <table>
            <thead>
              <tr>
                <th>{text('method')}</th>
                <th class="number">{text('calls')}</th>
                <th class="number">{text('failed')}</th>
                <th class="number">{text('p50')}</th>
                <th class="number">{text('p95')}</th>
                <th class="number">{text('p99')}</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.method}>
                  <td>
                    <code>{row.method}</code>
                  </td>
                  <td class="number">{count(row.count)}</td>
                  <td class={row.failed > 0 ? 'number bad' : 'number'}>{count(row.failed)}</td>
                  {QUANTILES.map((part) => (
                    <td class="number" key={part}>
                      {seconds(quantile(row.times, part))}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </section>
  );
};

const Indexes = ({ answer }: { answer: ListIndexesResponse }) => (
  <section>
    <h2 id="indexes">{text('indexes')}</h2>
    <Scroll labelledBy="indexes">
      <table>
        <thead>
          <tr>
            <th>{text('index')}</th>
            <th class="number">{text('documents')}</th>
            <th class="number">{text('changes')}</th>
            <th class="number">{text('age')}</th>
          </tr>
        </thead>
        <tbody>
          {answer.indexes.map((index) => (
            <tr key={index.index}>
              <td>{index.index}</td>
              <td class="number">{count(index.documents)}</td>
              <td class="number">{count(index.lagChanges)}</td>
              <td class="number">{index.lagChanges === 0n ? text('now') : seconds(index.lag === undefined ? 0 : durationMs(index.lag) / 1000)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  </section>
);

const Live = () => {
  const told = useAnswer('figures', (options) => figures.getFigures({ names: NAMES }, options), EVERY_MS);
  const listed = useAnswer('indexes', (options) => indexes.listIndexes({}, options), EVERY_MS);
  const [history, setHistory] = useState<History>(EMPTY);
  const [lags, setLags] = useState<Lags>(NO_LAGS);
  const seen = useRef<ListIndexesResponse | undefined>(undefined);
  // After another sign-in, nothing that the caller before was shown remains.
  useEffect(() => {
    setHistory(EMPTY);
    setLags(NO_LAGS);
  }, [credentials.value]);
  useEffect(() => {
    const now = told.value === undefined ? undefined : sampled(told.value);
    if (now !== undefined) setHistory((before) => grown(before, now));
  }, [told.value]);
  useEffect(() => {
    const answer = listed.value;
    if (answer === undefined || answer === seen.current) return;
    seen.current = answer;
    setLags((before) => lagged(before, answer, Date.now()));
  }, [listed.value]);
  const now = history.samples.at(-1);
  const last = history.points.at(-1);
  const times = history.points.map(({ at }) => at);
  const line = (label: string, value: (point: Point) => number | undefined) => ({ label, values: history.points.map(value) });
  // Calls in flight are counted at the gateway and again in the service: `atDoor` takes the gateway's alone.
  const whole = (name: string, atDoor = false): string => {
    const value = now === undefined ? undefined : total(now, name, (_, service) => !atDoor || service === door(now));
    return value === undefined ? '–' : count(value);
  };
  const rate = (value: number | undefined): string => (value === undefined ? '–' : number(value, 1));
  const backends = now?.figures.find(({ name }) => name === 'souk.gateway.backend.serving')?.values ?? [];
  return (
    <>
      <h1>{text('title')}</h1>
      <p class="quiet">{text('about')}</p>
      <Problem error={told.error} again={told.again} />
      {told.error !== undefined && now !== undefined && <p class="warn">{text('stopped', { time: new Date(now.at).toLocaleTimeString() })}</p>}
      {told.value !== undefined && told.value.time === undefined && <p>{text('nothing')}</p>}
      {now !== undefined && (
        <>
          <dl class="tiles">
            <Tile name={text('writes')} value={rate(last?.rates.write)} unit={text('second')} />
            <Tile name={text('searches')} value={rate(last?.rates.search)} unit={text('second')} />
            <Tile name={text('reads')} value={rate(last?.rates.read)} unit={text('second')} />
            <Tile name={text('failed')} value={rate(last?.failed)} unit={text('second')} />
            <Tile name={text('connections')} value={whole('souk.server.connections', true)} />
            <Tile name={text('active')} value={whole('souk.server.calls.active', true)} />
            <Tile name={text('memory')} value={bytes(total(now, 'process.memory.usage'))} />
            <Tile name={text('cpu')} value={last?.cores === undefined ? '–' : text('cores', { cores: number(last.cores, 2) })} />
            <Tile name={text('waiting')} value={whole('souk.search.waiting')} />
            <Tile name={text('watches')} value={whole('souk.watch.streams')} />
          </dl>
          {backends.length > 0 && (
            <p>
              {text('backends')}:{' '}
              {backends.map(({ attributes, kind }) => {
                const name = attributes['souk.backend'] ?? '';
                const processes = total(now, 'souk.gateway.backend.processes', (of) => of['souk.backend'] === name) ?? 0;
                const serving = kind.case === 'number' ? kind.value : 0;
                return (
                  <span key={name} class={serving < processes ? 'backend bad' : 'backend'}>
                    <strong>{name}</strong> {text('serving', { serving, processes })}
                  </span>
                );
              })}
            </p>
          )}
          <div class="charts">
            <Chart
              title={text('rates')}
              times={times}
              show={(value) => number(value, value < 10 ? 1 : 0)}
              lines={[line(text('writes'), ({ rates }) => rates.write), line(text('searches'), ({ rates }) => rates.search)]}
            />
            {(['search', 'write'] as const).map((kind) => (
              <Chart
                key={kind}
                title={text(kind === 'search' ? 'searchTimes' : 'writeTimes')}
                times={times}
                show={seconds}
                lines={(['p50', 'p95', 'p99'] as const).map((name, at) => line(text(name), (point) => point.times[kind][at]))}
              />
            ))}
            <Chart title={text('memory')} times={times} show={bytes} lines={[line(text('memory'), ({ memory }) => memory)]} />
            <Chart title={text('lag')} times={lags.times} show={seconds} lines={lags.all.map(([label, values]) => ({ label, values }))} />
          </div>
        </>
      )}
      <Problem error={listed.error} again={listed.again} />
      <div class="halves">
        {listed.value !== undefined && <Indexes answer={listed.value} />}
        <Changes />
      </div>
      <Methods history={history} />
    </>
  );
};

export default Live;
