/**
 * Pages of a search at any depth. The next page is told by the token of the one before. One that is jumped to is skipped to, as far as
 * a search skips; from the end where that is nearer; and beyond both by walking over the keys in between.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import type { CallOptions } from '@connectrpc/connect';
import { ConnectError } from '@connectrpc/connect';

import type { SortSchema } from './contract/souk/search/v1/query_pb';
import { MissingOrder } from './contract/souk/search/v1/query_pb';
import type { Search, SearchSchema, Total } from './contract/souk/search/v1/search_pb';
import { HitsMode } from './contract/souk/search/v1/search_pb';
import { reason } from './reasons';

/** Most hits that a search leaves out at its start. */
const SKIP_MAX = 100_000;
/** Most hits of a page. */
const PAGE_MAX = 1000;

export type SearchInit = Exclude<MessageInitShape<typeof SearchSchema>, Search>;
export type SortInit = MessageInitShape<typeof SortSchema>;

/** What the answers of all searches have in common. */
export interface Found<Hit> {
  hits: Hit[];
  nextPageToken: string;
  total?: Total | undefined;
}

/** Sends a search to its service. */
export type Ask<Hit, Answer extends Found<Hit>> = (search: SearchInit, options: CallOptions) => Promise<Answer>;

/** The tokens of pages, by the number of the page that each gives, as long as the search is the same. */
export class Places {
  #search = '';
  #tokens = new Map<number, string>();

  /** The tokens of a search, which are forgotten when another one is asked for. */
  of(search: string): Map<number, string> {
    if (this.#search !== search) {
      this.#search = search;
      this.#tokens = new Map();
    }
    return this.#tokens;
  }
}

/** A sort the other way round. It has to end in the primary key. */
const reversed = (sort: SortInit[]): SortInit[] =>
  sort.map(({ kind: key }): SortInit => {
    switch (key?.case) {
      case 'field': {
        const { missing } = key.value;
        const descending = !key.value.descending;
        // What stands for a missing value is sorted as that value.
        if (missing?.case === 'missingValue') return { kind: { case: 'field', value: { ...key.value, descending } } };
        const first = missing?.case === 'missingOrder' && missing.value === MissingOrder.FIRST;
        const other = { case: 'missingOrder' as const, value: first ? MissingOrder.LAST : MissingOrder.FIRST };
        return { kind: { case: 'field', value: { ...key.value, descending, missing: other } } };
      }
      case 'primaryKey':
        return { kind: { case: 'primaryKey', value: { descending: !key.value.descending } } };
      case 'score':
        return { kind: { case: 'score', value: { ascending: !key.value.ascending } } };
      default:
        throw new Error(`a sort by ${key?.case ?? 'nothing'} isn't read from its end`);
    }
  });

/** Reads page `page`, from 0, of `size` hits. `search` says what is looked for; its sort ends in the primary key. */
export const readPage = async <Hit, Answer extends Found<Hit>>(
  ask: Ask<Hit, Answer>,
  search: SearchInit & { sort: SortInit[] },
  page: number,
  size: number,
  tokens: Map<number, string>,
  options: CallOptions,
): Promise<Answer> => {
  const counted: SearchInit = { ...search, pageSize: size, total: { kind: { case: 'exact', value: true } } };
  const offset = page * size;
  const keep = (answer: Answer): Answer => {
    if (answer.nextPageToken !== '') tokens.set(page + 1, answer.nextPageToken);
    return answer;
  };
  const token = tokens.get(page);
  if (token !== undefined) {
    try {
      return keep(await ask({ ...counted, pageToken: token }, options));
    } catch (error) {
      // The index has been built anew: its pages are found again in the other ways.
      if (reason(ConnectError.from(error)) !== 'PAGE_TOKEN_INVALID') throw error;
      tokens.clear();
    }
  }
  if (offset <= SKIP_MAX) return keep(await ask({ ...counted, skip: offset }, options));
  const { aggregations: _, ...plain } = counted;
  const { total } = await ask({ ...plain, hitsMode: HitsMode.NONE }, options);
  const behind = Number(total?.value ?? 0n) - offset - size;
  if (behind + size <= 0) return ask({ ...counted, hitsMode: HitsMode.NONE }, options);
  if (behind <= SKIP_MAX) {
    const fromEnd = { ...counted, sort: reversed(search.sort), skip: Math.max(0, behind), pageSize: Math.min(size, size + behind) };
    const answer = await ask(fromEnd, options);
    answer.hits.reverse();
    // Its token goes on towards the beginning.
    answer.nextPageToken = '';
    return answer;
  }
  return keep(await ask({ ...counted, pageToken: await walked(ask, plain, offset, options) }, options));
};

/** The token of the page that begins at `offset`, beyond what can be skipped. */
const walked = async <Hit, Answer extends Found<Hit>>(
  ask: Ask<Hit, Answer>,
  search: SearchInit,
  offset: number,
  options: CallOptions,
): Promise<string> => {
  const { total: _, ...keys }: SearchInit = { ...search, hitsMode: HitsMode.KEYS };
  let at = SKIP_MAX;
  let token = '';
  while (at < offset) {
    const pageSize = Math.min(PAGE_MAX, offset - at);
    const answer = await ask(token === '' ? { ...keys, skip: at, pageSize } : { ...keys, pageToken: token, pageSize }, options);
    at += pageSize;
    token = answer.nextPageToken;
    if (token === '') break;
  }
  return token;
};
