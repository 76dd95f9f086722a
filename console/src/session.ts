/** Who calls. Keys and tokens are held in memory alone: they are gone when the page is closed or loaded again. */
import { signal } from '@preact/signals';

export interface Credentials {
  readonly kind: 'key' | 'token';
  readonly secret: string;
}

/** What the page calls with; undefined calls as nobody. */
export const credentials = signal<Credentials | undefined>(undefined);

/** Whether the server has refused a call because it doesn't know who calls: the page asks then. */
export const asked = signal(false);

/** The headers that say who calls. */
export const headers = (): Record<string, string> => {
  const own = credentials.value;
  if (own === undefined) return {};
  return own.kind === 'key' ? { 'x-api-key': own.secret } : { authorization: `Bearer ${own.secret}` };
};
