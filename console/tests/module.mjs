// Modules of the page by themselves, in Node.
import { fileURLToPath } from 'node:url';

import { runnerImport } from 'vite';

// What they look at when they are loaded.
globalThis.addEventListener ??= () => {};
globalThis.location ??= { hash: '', origin: 'http://page' };
globalThis.document ??= { documentElement: {} };
globalThis.navigator ??= { language: 'en' };

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Loads modules of `src`, as `pages.ts`, with what each of them exports. They share what they import. */
export const load = async (...names) => {
  const entry = {
    name: 'entry',
    resolveId: (id) => (id === 'entry' ? '\0entry' : null),
    load: (id) => (id === '\0entry' ? names.map((name) => `export * from ${JSON.stringify(`${ROOT}src/${name}`)};`).join('\n') : null),
  };
  const { module } = await runnerImport('entry', { root: ROOT, plugins: [entry], logLevel: 'error' });
  return module;
};
