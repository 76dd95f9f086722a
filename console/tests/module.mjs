// Modules of the page by themselves, in Node.
import { fileURLToPath } from 'node:url';

import { runnerImport } from 'vite';

// What they look at when they are loaded.
globalThis.addEventListener ??= () => {};
globalThis.location ??= { hash: '', origin: 'http://page' };
globalThis.document ??= { documentElement: {} };
globalThis.navigator ??= { language: 'en' };

/** Loads a module of `src`, as `pages.ts`. */
export const load = async (name) => {
  const { module } = await runnerImport(fileURLToPath(new URL(`../src/${name}`, import.meta.url)), { configFile: false, logLevel: 'error' });
  return module;
};
