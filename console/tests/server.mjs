// Servers for tests: the real `souk`, on a port and with a folder of its own.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const BINARY = process.env.SOUK_BINARY ?? fileURLToPath(new URL('../../target/debug/souk-under-test', import.meta.url));

/** The environment of a server: what stands there for the tests would be settings to it. */
const environment = () => {
  const { SOUK_BINARY: _, SOUK_URL: __, SOUK_PAGE: ___, SOUK_PICTURES: ____, SOUK_BROWSER: _____, ...rest } = process.env;
  return rest;
};

/** Starts `souk` with `args`; answers when it has said where it listens. */
export const start = async (args) => {
  const data = mkdtempSync(join(tmpdir(), 'souk-console-'));
  const listen = args.includes('--listen') ? [] : ['--listen', '127.0.0.1:0'];
  const child = spawn(BINARY, [...args, ...listen, '--data', join(data, 'data')], { stdio: ['ignore', 'pipe', 'pipe'], env: environment() });
  let log = '';
  const ended = new Promise((done) => child.on('exit', done));
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
    rmSync(data, { recursive: true, force: true });
  };
  const url = await new Promise((found, failed) => {
    let said = '';
    child.stdout.on('data', (chunk) => {
      said += chunk;
      const address = /listening on (\S+)/.exec(said)?.[1];
      if (address !== undefined) found(`http://${address}`);
    });
    child.stderr.on('data', (chunk) => (log = (log + chunk).slice(-10_000)));
    child.on('error', failed);
    ended.then((code) => failed(new Error(`souk ended with ${code}: ${log}`)));
  });
  return { url, port: Number(new URL(url).port), stop, child };
};

/** The demo with little data, the same for every test. */
export const startDemo = () => start(['demo', '--size', 'small']);

/** Calls an RPC by JSON, apart from the page: its answer is what the page is held against. */
export const ask = async (path, body, { url = process.env.SOUK_URL, headers = {} } = {}) => {
  const response = await fetch(`${url}/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${path}: ${JSON.stringify(answer)}`);
  return answer;
};
