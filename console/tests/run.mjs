// Runs the tests of the page against a demo with little data: `npm test`, or `npm test -- NAME` for tests/NAME.test.mjs alone.
//
// SOUK_BINARY   the `souk` to start; target/debug/souk-under-test without
// SOUK_URL      a server that runs already, instead: its data has to be that of `souk demo --size small`
// SOUK_BROWSER  `required` fails where there is no browser, instead of saying so
// SOUK_PAGE     where the page is, when not at the server: that of `npm run dev`
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { CHROMIUM } from './browser.mjs';
import { startDemo } from './server.mjs';

const folder = fileURLToPath(new URL('.', import.meta.url));
const names = process.argv.slice(2);
const files = readdirSync(folder)
  .filter((name) => name.endsWith('.test.mjs'))
  .filter((name) => names.length === 0 || names.includes(name.replace('.test.mjs', '')));
if (!existsSync(CHROMIUM)) {
  console.error(`NOT CHECKED: the page, since there is no browser at ${CHROMIUM}`);
  process.exit(process.env.SOUK_BROWSER === 'required' ? 1 : 0);
}
// Tests of single modules read what is generated from the contract.
if (!existsSync(`${folder}../src/contract`)) execFileSync('npm', ['run', '--silent', 'generate'], { cwd: `${folder}..`, stdio: 'inherit' });
const running = process.env.SOUK_URL;
const demo = running === undefined ? await startDemo() : undefined;
const url = running ?? demo.url;
const tests = spawn(process.execPath, ['--test', '--test-concurrency=1', '--test-timeout=300000', ...files.map((name) => folder + name)], {
  env: { ...process.env, SOUK_URL: url, SOUK_PAGE: process.env.SOUK_PAGE ?? url },
  stdio: 'inherit',
});
tests.on('exit', async (code) => {
  await demo?.stop();
  process.exit(code ?? 1);
});
