/** Parts of queries, as views put them together. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';

import type { QuerySchema, SortSchema } from './contract/souk/search/v1/query_pb';
import { Operator } from './contract/souk/search/v1/query_pb';
import type { ValueSchema } from './contract/souk/type/v1/type_pb';
import type { Rectangle } from './map/mercator';

export type Query = MessageInitShape<typeof QuerySchema>;
export type Sort = MessageInitShape<typeof SortSchema>;
export type Value = MessageInitShape<typeof ValueSchema>;

export const textValue = (value: string): Value => ({ kind: { case: 'stringValue', value } });
export const wholeValue = (value: bigint): Value => ({ kind: { case: 'intValue', value } });
export const realValue = (value: number): Value => ({ kind: { case: 'doubleValue', value } });
export const truthValue = (value: boolean): Value => ({ kind: { case: 'boolValue', value } });
export const bytesValue = (value: Uint8Array<ArrayBuffer>): Value => ({ kind: { case: 'bytesValue', value } });
export const timeValue = (value: Date): Value => ({ kind: { case: 'timeValue', value: timestampFromDate(value) } });

/** A field has a value. */
export const term = (field: string, value: Value): Query => ({ kind: { case: 'term', value: { field, value } } });

/** A field is at least, at most so much. */
export const atLeast = (field: string, value: Value): Query => ({
  kind: { case: 'range', value: { field, lower: { case: 'gte', value } } },
});
export const atMost = (field: string, value: Value): Query => ({
  kind: { case: 'range', value: { field, upper: { case: 'lte', value } } },
});

/** A text has all words of another. */
export const words = (field: string, text: string): Query => ({
  kind: { case: 'match', value: { field, text, operator: Operator.AND } },
});

/** A place is inside. */
export const inside = (field: string, { north, west, south, east }: Rectangle): Query => ({
  kind: {
    case: 'geoBoundingBox',
    value: { field, topLeft: { latitude: north, longitude: west }, bottomRight: { latitude: south, longitude: east } },
  },
});

/** All of them match; undefined ones are left out, and without any everything matches. */
export const all = (queries: readonly (Query | undefined)[]): Query => ({
  kind: { case: 'bool', value: { filter: queries.filter((query) => query !== undefined) } },
});

/** The highest, or lowest, of a field first. */
export const by = (field: string, descending = true): Sort => ({ kind: { case: 'field', value: { field, descending } } });
