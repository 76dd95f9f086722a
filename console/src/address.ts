/**
 * The state of the page is in its address, so that it can be kept, sent and gone back to: `#/orders?q=tea&page=2` is the view `orders`
 * with two values. What a view shows follows from its values alone.
 */
import { computed, signal } from '@preact/signals';

export interface Address {
  /** The name of the view; empty is the first. */
  readonly view: string;
  /** The values of the view's state. Those at their defaults aren't there. */
  readonly values: Readonly<Record<string, string>>;
}

const read = (hash: string): Address => {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  return { view: path, values: Object.fromEntries(new URLSearchParams(query)) };
};

const hash = signal(location.hash);
addEventListener('hashchange', () => (hash.value = location.hash));

/** The address of the page at present. */
export const address = computed(() => read(hash.value));

/** The link to a view with these values; empty ones are left out. */
export const link = (view: string, values: Record<string, string> = {}): string => {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ''));
  return `#/${view}${query.size > 0 ? `?${query}` : ''}`;
};

/**
 * Changes some values of the present view; empty ones are left out. With `replace` the browser's history gets no new entry: for values
 * that change many times a second.
 */
export const change = (values: Record<string, string>, replace = false): void => {
  const next = link(address.value.view, { ...address.value.values, ...values });
  if (next === location.hash) return;
  if (replace) {
    history.replaceState(null, '', next);
    hash.value = next;
  } else {
    location.hash = next;
    // `hashchange` is fired later: a change until then has to build on this one.
    hash.value = location.hash;
  }
};

/** Reads a value that is a JSON list of strings; empty when it is none. */
export const list = (value: string | undefined): string[] => {
  if (value === undefined) return [];
  try {
    const read: unknown = JSON.parse(value);
    return Array.isArray(read) ? read.filter((item) => typeof item === 'string') : [];
  } catch {
    return [];
  }
};

/** Writes a list of strings as a value: the inverse of `list`. An empty list is left out. */
export const listed = (texts: readonly string[]): string => (texts.length > 0 ? JSON.stringify(texts) : '');

/** Reads the index of the page, from 0; the address counts from 1. The first page where it is missing or no number. */
export const pageOf = (values: Address['values']): number => {
  const page = Number(values['page'] ?? '1') - 1;
  return Number.isSafeInteger(page) && page >= 0 ? page : 0;
};

/** Writes the index of the page as a value; the first page is left out. */
export const paged = (page: number): { page: string } => ({ page: page === 0 ? '' : String(page + 1) });

/** A control for a value of the address; `also` changes with it. */
export const field = (name: string, also: Record<string, string> = {}) => ({
  value: address.value.values[name] ?? '',
  onChange: (event: { currentTarget: { value: string } }): void => change({ [name]: event.currentTarget.value, ...also }),
});
