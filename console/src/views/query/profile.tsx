/** The profile of a search: the times of its steps, and the tree of its clauses with theirs. */
import type { Profile, ProfileNode } from '../../contract/souk/search/v1/search_pb';
import { SegmentAccess } from '../../contract/souk/search/v1/search_pb';
import { count, number } from '../../format';
import { texts } from '../../language';

const text = texts({
  en: {
    title: 'How it ran',
    wait: 'waiting for a write',
    plan: 'planning',
    find: 'finding and sorting',
    aggregate: 'aggregating',
    inner: 'inner hits',
    place: 'waiting for a place',
    fetch: 'reading rows',
    tree: 'Clauses, with the time to open each and its parts',
    candidates: '{count} candidates',
    opened: 'opened {count} times',
    segments: 'Segments of the index',
    segment: 'Segment {number}: {documents} documents, {access}',
    matches: '{count} matches',
    passed: 'passed over',
    counted: 'only counted',
    best: 'best values',
    all: 'all matches',
    whole: 'together {time}',
  },
  zh: {
    title: '执行过程',
    wait: '等待写入可见',
    plan: '规划',
    find: '查找与排序',
    aggregate: '聚合',
    inner: '内嵌命中',
    place: '等待执行位置',
    fetch: '读取行',
    tree: '各子句及打开它与其部分所用时间',
    candidates: '{count} 个候选',
    opened: '打开 {count} 次',
    segments: '索引分段',
    segment: '分段 {number}：{documents} 个文档，{access}',
    matches: '{count} 个匹配',
    passed: '已跳过',
    counted: '仅计数',
    best: '最佳值',
    all: '全部匹配',
    whole: '共 {time}',
  },
});

const micros = (value: bigint): string => (value < 10_000n ? `${count(value)} µs` : `${number(Number(value) / 1000, 1)} ms`);

const Node = ({ node, most }: { node: ProfileNode; most: number }) => (
  <li>
    <div class="node">
      <span>
        <strong>{node.kind}</strong> {node.description}
      </span>
      <span class="quiet">
        {text('candidates', { count: count(node.candidates) })}
        {node.opened > 1n && <>, {text('opened', { count: count(node.opened) })}</>}
      </span>
      <meter min={0} max={most} value={Number(node.micros)} aria-label={node.kind}>
        {micros(node.micros)}
      </meter>
      <span class="number">{micros(node.micros)}</span>
    </div>
    {node.children.length > 0 && (
      <ul>
        {node.children.map((child, at) => (
          <Node key={at} node={child} most={most} />
        ))}
      </ul>
    )}
  </li>
);

const access = (value: SegmentAccess): string => {
  switch (value) {
    case SegmentAccess.PASSED_OVER:
      return text('passed');
    case SegmentAccess.COUNTED:
      return text('counted');
    case SegmentAccess.BEST_VALUES:
      return text('best');
    default:
      return text('all');
  }
};

/** The time of the slowest clause of a tree, in microseconds, at least 1: the length of a full bar. */
const slowest = (node: ProfileNode | undefined): number => Math.max(1, Number(node?.micros ?? 0n), ...(node?.children ?? []).map(slowest));

export const ProfileTree = ({ profile }: { profile: Profile }) => {
  const known = profile.planMicros + profile.findMicros + profile.aggregateMicros + profile.innerHitsMicros;
  const steps: [string, bigint][] = [
    [text('wait'), profile.waitMicros],
    [text('place'), profile.searchMicros > known ? profile.searchMicros - known : 0n],
    [text('plan'), profile.planMicros],
    [text('find'), profile.findMicros],
    [text('aggregate'), profile.aggregateMicros],
    [text('inner'), profile.innerHitsMicros],
    [text('fetch'), profile.fetchMicros],
  ];
  const whole = profile.waitMicros + profile.searchMicros + profile.fetchMicros;
  return (
    <section aria-labelledby="profile" class="profile">
      <h2 id="profile">
        {text('title')} <small class="quiet">{text('whole', { time: micros(whole) })}</small>
      </h2>
      <ul class="steps">
        {steps
          .filter(([, took]) => took > 0n)
          .map(([name, took]) => (
            <li key={name} class="node">
              <span>{name}</span>
              <meter min={0} max={Math.max(1, Number(whole))} value={Number(took)} aria-label={name}>
                {micros(took)}
              </meter>
              <span class="number">{micros(took)}</span>
            </li>
          ))}
      </ul>
      {profile.query !== undefined && (
        <>
          <h3>{text('tree')}</h3>
          <ul class="tree">
            <Node node={profile.query} most={slowest(profile.query)} />
          </ul>
        </>
      )}
      {profile.segments.length > 0 && (
        <details>
          <summary>
            {text('segments')} ({count(profile.segments.length)})
          </summary>
          {profile.segments.map((segment, at) => (
            <details key={at}>
              <summary>
                {text('segment', { number: at + 1, documents: count(segment.documents), access: access(segment.access) })}
                {segment.matches > 0n && <>, {text('matches', { count: count(segment.matches) })}</>}, {micros(segment.micros)}
              </summary>
              {segment.query !== undefined && (
                <ul class="tree">
                  <Node node={segment.query} most={slowest(segment.query)} />
                </ul>
              )}
            </details>
          ))}
        </details>
      )}
    </section>
  );
};
