/** Which searches there are, and what can be written into one: all read from the contract and from the indexes. */
import type { DescField, DescMessage, DescMethod, DescService } from '@bufbuild/protobuf';
import { ScalarType } from '@bufbuild/protobuf';

import { MediaService } from '../../contract/souk/media/v1/media_pb';
import { ConsumerService } from '../../contract/souk/order/v1/consumer_pb';
import { OrderService } from '../../contract/souk/order/v1/order_pb';
import { ProductService } from '../../contract/souk/order/v1/product_pb';
import { SalespersonService } from '../../contract/souk/order/v1/salesperson_pb';
import type { Index, IndexField } from '../../contract/souk/search/v1/index_pb';
import { IndexFieldType } from '../../contract/souk/search/v1/index_pb';
import { SearchSchema } from '../../contract/souk/search/v1/search_pb';
import { ShopService } from '../../contract/souk/shop/v1/shop_pb';
import { TableService } from '../../contract/souk/table/v1/table_service_pb';
import type { JsonObject, Writing } from './json';

/** The RPC that searches a table. */
export interface Rpc {
  readonly service: DescService;
  readonly method: DescMethod;
}

const searchOf = (service: DescService): Rpc | undefined => {
  const method = service.methods.find(({ name }) => name.startsWith('Search'));
  return method === undefined ? undefined : { service, method };
};

const OWN: ReadonlyMap<string, Rpc> = new Map(
  [OrderService, ConsumerService, SalespersonService, ProductService, ShopService, MediaService].flatMap((service) => {
    const rpc = searchOf(service);
    return rpc === undefined ? [] : [[rpc.method.name.replace('Search', '').toLowerCase(), rpc] as const];
  }),
);

/** The RPC that searches a table: its service's own, or SearchRows for a table of users. */
export const rpcOf = (table: string): Rpc => OWN.get(table) ?? { service: TableService, method: TableService.method.searchRows };

/** The request that searches an index; the first index of a table needn't be named. */
export const requestOf = (index: Index, search: JsonObject): JsonObject => {
  const named = index.index === index.table ? search : { ...search, index: index.index };
  return OWN.has(index.table) ? { search: named } : { table: index.table, search: named };
};

/** The member of `souk.type.v1.Value` that a field takes, by the field's type. */
export const kindOfValue = (fields: readonly IndexField[], name: unknown): string => {
  switch (fields.find(({ field }) => field === name)?.type) {
    case IndexFieldType.LONG:
      return 'int_value';
    case IndexFieldType.DOUBLE:
      return 'double_value';
    case IndexFieldType.BOOLEAN:
      return 'bool_value';
    case IndexFieldType.DATE:
      return 'time_value';
    default:
      return 'string_value';
  }
};

/** Whether a field of the contract holds the name of a field of the index. */
export const namesField = ({ name, parent }: DescField): boolean => name === 'field' || name === 'path' || (name === 'fields' && parent.name === 'Highlight');

/** The fields of the index that this field of the contract can name: nested ones for a path, texts for a highlight, all but nested ones else. */
export const fieldsFor = (field: DescField, fields: readonly IndexField[]): readonly IndexField[] => {
  const nested = ({ type }: IndexField): boolean => type === IndexFieldType.NESTED;
  if (field.name === 'path') return fields.filter(nested);
  if (field.name === 'fields') return fields.filter(({ type }) => type === IndexFieldType.TEXT);
  return fields.filter((one) => !nested(one));
};

export const VALUE = 'souk.type.v1.Value';

/** A completion: what the list shows, and the text that is inserted. */
export interface Completion {
  readonly shown: string;
  readonly written: string;
}

const named = (message: DescMessage, name: string): DescField | undefined =>
  message.fields.find((field) => field.name === name || field.jsonName === name);

const emptyOf = (field: DescField): string => {
  if (field.fieldKind === 'list') return '[]';
  if (field.fieldKind === 'map' || field.fieldKind === 'message') return '{}';
  if (field.fieldKind === 'enum') return '""';
  return field.scalar === ScalarType.STRING ? '""' : field.scalar === ScalarType.BOOL ? 'true' : '0';
};

/** The completions at a place in a search: the contract's field names and enum values, and the fields of the index. */
export const completions = ({ inside, of, expects, begun, quoted }: Writing, fields: readonly IndexField[]): Completion[] => {
  let message: DescMessage | undefined = SearchSchema;
  // The list or map that the place is in directly.
  let around: DescField | undefined;
  for (const part of inside) {
    if (around?.fieldKind === 'map' || around?.fieldKind === 'list') {
      message = around.message;
      around = undefined;
      continue;
    }
    const field: DescField | undefined = typeof part === 'string' && message !== undefined ? named(message, part) : undefined;
    if (field?.fieldKind === 'list' || field?.fieldKind === 'map') around = field;
    else {
      message = field?.message;
      around = undefined;
    }
    if (field === undefined) return [];
  }
  const fits = (text: string): boolean => text.toLowerCase().startsWith(begun.toLowerCase());
  const text = (shown: string): Completion => ({ shown, written: quoted ? `${shown}"` : `"${shown}"` });
  if (expects === 'name') {
    if (around !== undefined || message === undefined) return [];
    return message.fields
      .filter(({ name }) => fits(name))
      .map((field) => ({ shown: field.name, written: `${quoted ? '' : '"'}${field.name}": ${emptyOf(field)}` }));
  }
  if (expects !== 'value') return [];
  const field = around ?? (of === undefined || message === undefined ? undefined : named(message, of));
  if (field === undefined) return [];
  if (namesField(field)) return fieldsFor(field, fields).filter((one) => fits(one.field)).map((one) => text(one.field));
  if (field.enum !== undefined) return field.enum.values.filter(({ name, number }) => number !== 0 && fits(name)).map(({ name }) => text(name));
  if (quoted) return [];
  if (field.fieldKind === 'scalar' && field.scalar === ScalarType.BOOL) return ['true', 'false'].filter(fits).map((shown) => ({ shown, written: shown }));
  const empty = around !== undefined && field.message !== undefined ? '{}' : emptyOf(field);
  return begun === '' && (field.message !== undefined || field.fieldKind === 'list') ? [{ shown: empty, written: empty }] : [];
};
