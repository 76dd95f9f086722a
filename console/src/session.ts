/** Who calls. Keys and tokens are held in memory alone: they are gone when the page is closed or loaded again. */
import { signal } from '@preact/signals';

export interface Credentials {
  readonly kind: 'key' | 'token';
  readonly secret: string;
}

/** What the page calls with; undefined calls as nobody. */
export const credentials = signal<Credentials | undefined>(undefined);

/** Whether the page asks who calls: it does when the server has refused a call for that, until somebody has said that they don't say it. */
export const asking = signal<'no' | 'yes' | 'declined'>('no');

/** The server doesn't know who calls. */
export const ask = (): void => {
  if (asking.value === 'no') asking.value = 'yes';
};

/** Calls as somebody else from now on; undefined is nobody. */
export const become = (next: Credentials | undefined): void => {
  asking.value = 'no';
  credentials.value = next;
};

/** The headers that say who calls. */
export const headers = (): Record<string, string> => {
  const own = credentials.value;
  if (own === undefined) return {};
  return own.kind === 'key' ? { 'x-api-key': own.secret } : { authorization: `Bearer ${own.secret}` };
};
