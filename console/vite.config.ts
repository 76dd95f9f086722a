import type { ProxyOptions } from 'vite';
import { defineConfig } from 'vite';

/** The server that `npm run dev` passes calls on to. */
const server = process.env['SOUK'] ?? 'http://127.0.0.1:50051';

/** Passes the beginning of an answer on at once, as the server does: a stream has begun before it tells anything. */
const flushed: ProxyOptions['configure'] = (proxy) => {
  proxy.on('proxyRes', (_answer, _request, response) => queueMicrotask(() => response.flushHeaders()));
};

export default defineConfig({
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    // What is built is the same on every machine, and has no inline script or style, which the page's policy refuses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    target: 'es2022',
  },
  server: {
    proxy: { '^/(souk|grpc)\\.': { target: server, changeOrigin: true, configure: flushed }, '/v1/': server, '/openapi.json': server },
  },
});
