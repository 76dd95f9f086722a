/** Media as a wall of cards, found by their tags, how sure these are, kind and title; and where they were made. */
import { durationMs, timestampDate } from '@bufbuild/protobuf/wkt';
import { useMemo, useState } from 'preact/hooks';

import { address, change, field, list, listed } from '../address';
import { useAnswer } from '../answer';
import { client } from '../calls';
import type { Media } from '../contract/souk/media/v1/media_pb';
import { MediaService, MediaType } from '../contract/souk/media/v1/media_pb';
import { ScoreMode, SortMode } from '../contract/souk/search/v1/query_pb';
import { HitsMode } from '../contract/souk/search/v1/search_pb';
import { Facts } from '../facts';
import { Field } from '../field';
import { bytes, count, day, number, time } from '../format';
import { texts } from '../language';
import { World } from '../map/lazy';
import type { View } from '../map/mercator';
import type { Spot } from '../map/drawing';
import { Problem } from '../problem';
import type { Query, Sort } from '../queries';
import { all, atLeast, by, realValue, term, textValue, words } from '../queries';
import { shown } from '../values';
import './media.css';

const text = texts({
  en: {
    title: 'Media',
    words: 'Words of the title',
    kind: 'Kind',
    any: 'all',
    image: 'Pictures',
    video: 'Videos',
    audio: 'Sounds',
    document: 'Documents',
    user: 'User',
    score: 'Tags at least this sure',
    order: 'Order',
    newest: 'newest first',
    surest: 'surest of the tag first',
    largest: 'largest first',
    clear: 'Clear all',
    total: '{count} found',
    tags: 'Tags, the more often the larger',
    none: 'There are none. Ask for less.',
    more: 'Show more',
    where: 'Where they were made',
    places: 'Map of where the media shown were made',
    placed: '{placed} of the {shown} that are shown have a place.',
    close: 'Close',
    id: 'Id',
    format: 'Format',
    size: 'Size',
    dimensions: 'Pixels',
    length: 'Length',
    made: 'Made',
    camera: 'Camera',
    uri: 'File',
    people: 'People',
    position: 'Position',
    revision: 'Revision',
    seconds: '{count} s',
    surely: '{tag}, {count} media',
  },
  zh: {
    title: '媒体',
    words: '标题中的词',
    kind: '种类',
    any: '全部',
    image: '图片',
    video: '视频',
    audio: '音频',
    document: '文档',
    user: '用户',
    score: '标签置信度不低于',
    order: '排序',
    newest: '最新优先',
    surest: '标签置信度高优先',
    largest: '最大优先',
    clear: '清除全部',
    total: '共 {count} 项',
    tags: '标签（越常见越大）',
    none: '没有结果。请放宽条件。',
    more: '显示更多',
    where: '拍摄地点',
    places: '所示媒体的拍摄地点地图',
    placed: '所示 {shown} 项中 {placed} 项有地点。',
    close: '关闭',
    id: '编号',
    format: '格式',
    size: '大小',
    dimensions: '像素',
    length: '时长',
    made: '拍摄时间',
    camera: '相机',
    uri: '文件',
    people: '人物',
    position: '位置',
    revision: '版本',
    seconds: '{count} 秒',
    surely: '{tag}，{count} 项媒体',
  },
});

const KINDS = ['image', 'video', 'audio', 'document'] as const;
type Kind = (typeof KINDS)[number];

const PAGE = 24;
const SHOWN_MAX = 480;

/** Another search begins with as many as the first. */
const FROM_START = { show: '' };

/** Tags in the cloud. */
const TAGS = 60;

/** Tags on a card, the surest ones. */
const ON_CARD = 4;

const media = client(MediaService);

const kindOf = ({ type }: Media): Kind | undefined =>
  ({ [MediaType.IMAGE]: 'image', [MediaType.VIDEO]: 'video', [MediaType.AUDIO]: 'audio', [MediaType.DOCUMENT]: 'document' } as const)[
    type as Exclude<MediaType, MediaType.UNSPECIFIED>
  ];

/** What stands for a picture: there are none, only what is known of them. */
const Stand = ({ one }: { one: Media }) => {
  const kind = kindOf(one);
  return (
    <svg viewBox="0 0 48 32" class={`stand ${kind ?? ''}`} aria-hidden="true">
      {kind === 'image' && <path d="M4 28 16 12l8 10 5-6 15 12zM36 4a4 4 0 1 1 0 8 4 4 0 0 1 0-8z" />}
      {kind === 'video' && <path d="M6 6h24v20H6zm26 8 10-6v16l-10-6z" />}
      {kind === 'audio' && <path d="M18 6h18v16a4 4 0 1 1-3-4v-8H21v14a4 4 0 1 1-3-4z" />}
      {kind === 'document' && <path d="M12 3h18l6 6v20H12zm5 10h14v2H17zm0 5h14v2H17zm0 5h9v2h-9z" />}
    </svg>
  );
};

/** A tag of an object, and how sure it is at least. */
const tagged = (tag: string, score: number | undefined): Query => ({
  kind: {
    case: 'nested',
    value: {
      path: 'tags',
      query: all([term('tags.tag', textValue(tag)), score === undefined ? undefined : atLeast('tags.score', realValue(score))]),
      scoreMode: ScoreMode.NONE,
    },
  },
});

/** The surest of these tags first; of all tags without any. */
const surest = (tags: readonly string[]): Sort => ({
  kind: {
    case: 'field',
    value: {
      field: 'tags.score',
      descending: true,
      mode: SortMode.MAX,
      ...(tags.length === 0
        ? {}
        : { nested: { path: 'tags', filter: { kind: { case: 'terms', value: { field: 'tags.tag', values: tags.map(textValue) } } } } }),
    },
  },
});

const dimensions = ({ width, height }: Media): string => (width === undefined || height === undefined ? '' : `${width} × ${height}`);

const length = ({ duration }: Media): string => (duration === undefined ? '' : text('seconds', { count: number(durationMs(duration) / 1000, 1) }));

/** A number of the address from 0 to 1; undefined when it isn't one. */
const part = (value: string | undefined): number | undefined => {
  const read = Number(value || NaN);
  return read > 0 && read <= 1 ? read : undefined;
};

const Card = ({ one, chosen, toggle }: { one: Media; chosen: readonly string[]; toggle: (tag: string) => void }) => {
  const tags = one.tags.toSorted(
    (a, b) => Number(chosen.includes(b.tag)) - Number(chosen.includes(a.tag)) || (b.score ?? 0) - (a.score ?? 0),
  );
  return (
    <article class="card panel">
      <Stand one={one} />
      <h2>
        <button type="button" class="plain" onClick={() => change({ media: one.mediaId })}>
          {one.title || one.mediaId}
        </button>
      </h2>
      <p class="quiet">
        {[dimensions(one), length(one), one.createdAt === undefined ? '' : day(timestampDate(one.createdAt))].filter((part) => part !== '').join(' · ')}
      </p>
      <p>
        {tags.slice(0, ON_CARD).map(({ tag, score }) => (
          <button key={tag} type="button" class="tag" aria-pressed={chosen.includes(tag)} onClick={() => toggle(tag)}>
            {tag} {score !== undefined && <small>{number(score, 2)}</small>}
          </button>
        ))}
      </p>
    </article>
  );
};

const Details = ({ one }: { one: Media }) => {
  const facts: [string, string][] = [
    [text('id'), one.mediaId],
    [text('user'), one.userId],
    [text('format'), one.format],
    [text('size'), one.sizeBytes === undefined ? '' : bytes(one.sizeBytes)],
    [text('dimensions'), dimensions(one)],
    [text('length'), length(one)],
    [text('made'), time(one.createdAt)],
    [text('camera'), one.camera],
    [text('uri'), one.uri],
    ['MD5', one.md5],
    [text('position'), one.position === undefined ? '' : `${one.position.latitude}, ${one.position.longitude}`],
    ...one.tags.map(({ tag, score }): [string, string] => [tag, score === undefined ? '–' : number(score, 3)]),
    [text('people'), one.faces.map(({ person, similarity }) => `${person} ${similarity === undefined ? '' : number(similarity, 2)}`).join(', ')],
    ...Object.entries(one.attributes).map(([name, value]): [string, string] => [name, shown(value)]),
    [text('revision'), count(one.revision)],
  ];
  return <Facts facts={facts} />;
};

const Places = ({ found }: { found: readonly Media[] }) => {
  const [view, setView] = useState<View>({ latitude: 30, longitude: 80, zoom: 1 });
  const spots = useMemo(
    (): Spot[] => found.flatMap(({ mediaId, position }) => (position === undefined ? [] : [{ id: mediaId, count: 1, label: '', ...position }])),
    [found],
  );
  return (
    <>
      <p class="quiet">{text('placed', { placed: count(spots.length), shown: count(found.length) })}</p>
      <div class="places">
        <World
          label={text('places')}
          view={view}
          spots={spots}
          chosen={address.value.values['media'] ?? ''}
          onSettle={setView}
          onSpot={({ id }) => change({ media: id })}
        />
      </div>
    </>
  );
};

const MediaView = () => {
  const { values } = address.value;
  const [q = '', user = '', kind = '', chosen = ''] = [values['q'], values['user'], values['kind'], values['media']];
  const tags = useMemo(() => list(values['tags']), [values['tags']]);
  const score = part(values['score']);
  const order = values['order'] ?? 'newest';
  const size = Math.min(Math.max(Math.floor(Number(values['show'] ?? PAGE)) || PAGE, PAGE), SHOWN_MAX);
  const query = all([
    q === '' ? undefined : words('title', q),
    user === '' ? undefined : term('user_id', textValue(user)),
    kind === '' ? undefined : term('type', textValue(kind)),
    ...tags.map((tag) => tagged(tag, score)),
    score === undefined || tags.length > 0
      ? undefined
      : { kind: { case: 'nested', value: { path: 'tags', query: atLeast('tags.score', realValue(score)), scoreMode: ScoreMode.NONE } } },
  ]);
  const sort = order === 'surest' ? surest(tags) : order === 'largest' ? by('size_bytes') : by('created_at');
  const found = useAnswer(JSON.stringify([q, user, kind, tags, score, order, size]), (options) =>
    media.searchMedia({ search: { query, sort: [sort], pageSize: size, total: { kind: { case: 'exact', value: true } } } }, options),
  );
  const cloud = useAnswer(JSON.stringify([q, user, kind, tags, score]), (options) =>
    media.searchMedia(
      { search: { query, hitsMode: HitsMode.NONE, aggregations: { tags: { kind: { case: 'terms', value: { field: 'tags.tag', size: TAGS } } } } } },
      options,
    ),
  );
  const one = useAnswer(chosen === '' ? undefined : chosen, (options) => media.getMedia({ mediaId: chosen }, options));
  const details = one.old ? undefined : one.value?.media;
  const groups = cloud.value?.aggregations['tags']?.kind;
  const often = groups?.case === 'groups' ? groups.value.groups.map(({ keys, count }) => [shown(keys[0]), count] as const) : [];
  const most = Number(often[0]?.[1] ?? 1n);
  const both = (): void => {
    found.again();
    cloud.again();
  };
  const toggle = (tag: string): void =>
    change({ tags: listed(tags.includes(tag) ? tags.filter((other) => other !== tag) : [...tags, tag]), ...FROM_START });
  const hits = useMemo(() => (found.value?.hits ?? []).flatMap(({ resource }) => (resource === undefined ? [] : [resource])), [found.value]);
  return (
    <>
      <h1>{text('title')}</h1>
      <div class="row">
        <Field label={text('words')} name="q" also={FROM_START} type="text" maxLength={256} grow />
        <label>
          {text('kind')}
          <select {...field('kind', FROM_START)}>
            <option value="">{text('any')}</option>
            {KINDS.map((kind) => (
              <option key={kind} value={kind}>
                {text(kind)}
              </option>
            ))}
          </select>
        </label>
        <Field label={text('user')} name="user" also={FROM_START} type="text" maxLength={128} />
        <Field label={text('score')} name="score" also={FROM_START} type="number" min="0" max="1" step="0.05" />
        <label>
          {text('order')}
          <select value={order} onChange={(event) => change({ order: event.currentTarget.value === 'newest' ? '' : event.currentTarget.value, ...FROM_START })}>
            {(['newest', 'surest', 'largest'] as const).map((order) => (
              <option key={order} value={order}>
                {text(order)}
              </option>
            ))}
          </select>
        </label>
        <button type="button" onClick={() => change({ q: '', kind: '', user: '', score: '', tags: '', order: '', show: '', media: '' })}>
          {text('clear')}
        </button>
      </div>
      <Problem error={found.error ?? cloud.error} again={both} old={found.old || cloud.old} />
      <section aria-label={text('tags')}>
        <ul class="cloud">
          {tags
            .filter((tag) => !often.some(([other]) => other === tag))
            .map((tag): readonly [string, bigint] => [tag, 0n])
            .concat(often)
            .map(([tag, count_]) => (
              <li key={tag}>
                <button
                  type="button"
                  class="tag"
                  aria-pressed={tags.includes(tag)}
                  aria-label={text('surely', { tag, count: count(count_) })}
                  // From 0.8 to 2 times the size of text, by the logarithm.
                  style={{ fontSize: `${(0.8 + 1.2 * (Math.log1p(Number(count_)) / Math.log1p(most))).toFixed(2)}em` }}
                  onClick={() => toggle(tag)}
                >
                  {tag} <small>{count(count_)}</small>
                </button>
              </li>
            ))}
        </ul>
      </section>
      <p class="quiet" role="status">
        {found.value === undefined ? '…' : text('total', { count: count(found.value.total?.value ?? 0n) })}
        {found.waiting && found.value !== undefined && ' …'}
      </p>
      {chosen !== '' && (
        <section class="panel" aria-labelledby="media">
          <h2 id="media">{details === undefined ? '…' : details.title || details.mediaId}</h2>
          <Problem error={one.error} again={one.again} />
          {details !== undefined && <Details one={details} />}
          <div class="row">
            <button type="button" onClick={() => change({ media: '' })}>
              {text('close')}
            </button>
          </div>
        </section>
      )}
      <details open={values['where'] === '1'} onToggle={(event) => change({ where: event.currentTarget.open ? '1' : '' }, true)}>
        <summary>{text('where')}</summary>
        {values['where'] === '1' && <Places found={hits} />}
      </details>
      {found.value !== undefined && hits.length === 0 && <p>{text('none')}</p>}
      <div class="wall">
        {hits.map((one) => (
          <Card key={one.mediaId} one={one} chosen={tags} toggle={toggle} />
        ))}
      </div>
      {found.value?.nextPageToken !== undefined && found.value.nextPageToken !== '' && size < SHOWN_MAX && (
        <div class="row">
          <button type="button" onClick={() => change({ show: String(size + PAGE) }, true)}>
            {text('more')}
          </button>
        </div>
      )}
    </>
  );
};

export default MediaView;
