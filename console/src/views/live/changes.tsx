/** The changes of a service as they come. */
import { useEffect, useState } from 'preact/hooks';

import { address, change } from '../../address';
import { ChangeKind } from '../../contract/souk/type/v1/type_pb';
import { count, time } from '../../format';
import { texts } from '../../language';
import { Problem } from '../../problem';
import { Scroll } from '../../scroll';
import type { Followed, Missed } from './writes';
import { SHOWN, SOURCES, isLasting, useWrites } from './writes';

const text = texts({
  en: {
    title: 'Changes as they come',
    of: 'Changes of',
    orders: 'Orders',
    shops: 'Shops',
    media: 'Media',
    none: 'Nothing',
    pause: 'Pause',
    resume: 'Go on',
    paused: 'Paused: on “Go on” it goes on where it stopped.',
    pausedUnopened: 'Paused before the stream was open: what changes until “Go on” isn’t told of here.',
    follows: 'Following: sequence {sequence} is reached.',
    begins: 'The stream is being opened: changes before that aren’t told of.',
    reopens: 'The stream is being opened again, and goes on where it stopped.',
    stopped: 'Changes aren’t followed.',
    trimmed: 'Changes after sequence {sequence} are missing here: the server no longer keeps all of them. It goes on with the present ones.',
    ahead: 'The server’s log ends before sequence {sequence}: it is another one, or has been restored. It goes on with the present changes.',
    retries: 'The stream has ended; it is opened again in {seconds} s, and goes on where it stopped.',
    sequence: 'Sequence',
    when: 'Committed',
    what: 'What',
    created: 'created',
    updated: 'changed',
    deleted: 'deleted',
    more: 'and {count} more',
    empty: 'No change yet.',
    seen: '{count} changes since this view was opened; the last {shown} writes are shown.',
  },
  zh: {
    title: '实时变更',
    of: '变更来源',
    orders: '订单',
    shops: '店铺',
    media: '媒体',
    none: '无',
    pause: '暂停',
    resume: '继续',
    paused: '已暂停：点击“继续”将从停止处接着显示。',
    pausedUnopened: '数据流打开之前已暂停：点击“继续”之前的变更不会显示。',
    follows: '跟踪中：已到序号 {sequence}。',
    begins: '正在打开数据流：此前的变更不会显示。',
    reopens: '正在重新打开数据流，并从断开处继续。',
    stopped: '未在跟踪变更。',
    trimmed: '序号 {sequence} 之后的变更有缺失：服务器已不再全部保留。将从当前变更继续。',
    ahead: '服务器日志在序号 {sequence} 之前结束：它是另一台服务器，或已从备份恢复。将从当前变更继续。',
    retries: '数据流已断开；{seconds} 秒后重新连接，并从断开处继续。',
    sequence: '序号',
    when: '提交时间',
    what: '操作',
    created: '新建',
    updated: '修改',
    deleted: '删除',
    more: '另有 {count} 条',
    empty: '暂无变更。',
    seen: '打开此视图以来共 {count} 条变更；显示最近 {shown} 次写入。',
  },
});

const word = (kind: ChangeKind): string =>
  kind === ChangeKind.CREATED ? text('created') : kind === ChangeKind.DELETED ? text('deleted') : text('updated');

/** Whether the page is seen: one that isn't holds no stream. */
const useSeen = (): boolean => {
  const [seen, setSeen] = useState(document.visibilityState === 'visible');
  useEffect(() => {
    const look = (): void => setSeen(document.visibilityState === 'visible');
    document.addEventListener('visibilitychange', look);
    return () => document.removeEventListener('visibilitychange', look);
  }, []);
  return seen;
};

/** What the stream is at. */
const standing = ({ reached, error, retryS }: Followed, paused: boolean): string => {
  if (paused) return text(reached === undefined ? 'pausedUnopened' : 'paused');
  if (retryS !== undefined) return text('retries', { seconds: retryS });
  if (error !== undefined && isLasting(error)) return text('stopped');
  if (reached === undefined) return text('begins');
  return error !== undefined ? text('reopens') : text('follows', { sequence: count(reached) });
};

const missing = ({ after, trimmed }: Missed): string => text(trimmed ? 'trimmed' : 'ahead', { sequence: count(after) });

export const Changes = () => {
  const chosen = address.value.values['of'] ?? 'orders';
  const source = SOURCES.find((one) => one === chosen);
  const [paused, setPaused] = useState(false);
  const seen = useSeen();
  const followed = useWrites(source, seen && !paused);
  const { last, count: all, missed, error, retryS } = followed;
  return (
    <section>
      <h2 id="changes">{text('title')}</h2>
      <div class="row">
        <label>
          {text('of')}
          <select value={source ?? 'none'} onChange={(event) => change({ of: event.currentTarget.value === 'orders' ? '' : event.currentTarget.value })}>
            {SOURCES.map((one) => (
              <option key={one} value={one}>
                {text(one)}
              </option>
            ))}
            <option value="none">{text('none')}</option>
          </select>
        </label>
        {source !== undefined && (
          <button type="button" aria-pressed={paused} onClick={() => setPaused(!paused)}>
            {text(paused ? 'resume' : 'pause')}
          </button>
        )}
      </div>
      {source !== undefined && (
        <>
          <Problem error={error} {...(retryS === undefined && !paused && { again: followed.again })} />
          {missed !== undefined && <p class="warn">{missing(missed)}</p>}
          <p class="quiet" role="status">
            {standing(followed, paused)} {text('seen', { count: count(all), shown: count(SHOWN) })}
          </p>
          {last.length === 0 ? (
            <p>{text('empty')}</p>
          ) : (
            <Scroll labelledBy="changes" short>
              <table>
                <thead>
                  <tr>
                    <th class="number">{text('sequence')}</th>
                    <th>{text('when')}</th>
                    <th>{text('what')}</th>
                  </tr>
                </thead>
                <tbody>
                  {last.map((write) => (
                    <tr key={String(write.sequence)}>
                      <td class="number">{count(write.sequence)}</td>
                      <td>{time(write.at)}</td>
                      <td>
                        {write.changes.map(({ kind, id, name }) => (
                          <div key={id}>
                            <span class={kind === ChangeKind.DELETED ? 'bad' : 'good'}>{word(kind)}</span> <code>{id}</code> {name}
                          </div>
                        ))}
                        {write.count > write.changes.length && <div class="quiet">{text('more', { count: count(write.count - write.changes.length) })}</div>}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Scroll>
          )}
        </>
      )}
    </section>
  );
};
