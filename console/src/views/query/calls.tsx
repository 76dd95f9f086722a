/** The same call as other programs make it. */
import { useState } from 'preact/hooks';

import { change } from '../../address';
import { texts } from '../../language';
import { credentials } from '../../session';
import type { JsonObject } from './json';
import type { Rpc } from './schema';

const text = texts({
  en: {
    title: 'The same call',
    copy: 'Copy',
    copied: 'Copied',
    uncopied: 'The browser didn’t let it be copied: it is selected.',
    key: 'The key or token is read from the variable SOUK_KEY.',
    generated: 'With the code that buf generates of the contract, as in clients/ of the sources.',
  },
  zh: {
    title: '等价的调用',
    copy: '复制',
    copied: '已复制',
    uncopied: '浏览器不允许复制：内容已选中。',
    key: '密钥或令牌从环境变量 SOUK_KEY 读取。',
    generated: '使用由 buf 根据契约生成的代码，参见源码的 clients/。',
  },
});

const PROGRAMS = ['grpcurl', 'curl', 'Python', 'TypeScript'] as const;
type Program = (typeof PROGRAMS)[number];

export interface Call {
  readonly rpc: Rpc;
  readonly request: JsonObject;
  /** The address of the server: `http://localhost:50051`. */
  readonly origin: string;
  /** The name and the value of the header that says who calls, the value in terms of `SOUK_KEY`. */
  readonly header: readonly [string, (key: string) => string] | undefined;
}

/** A text as one word of a shell. */
const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

const indented = (text: string, by: string): string => text.replaceAll('\n', `\n${by}`);

const grpcurl = ({ rpc, request, origin, header }: Call): string => {
  const { protocol, host, port } = new URL(origin);
  const address = port === '' ? `${host}:${protocol === 'https:' ? 443 : 80}` : host;
  const plain = protocol === 'https:' ? '' : ' -plaintext';
  const who = header === undefined ? '' : ` -H "${header[0]}: ${header[1]('$SOUK_KEY')}"`;
  return `grpcurl${plain}${who} -d ${quoted(JSON.stringify(request))} ${address} ${rpc.service.typeName}/${rpc.method.name}`;
};

const curl = ({ rpc, request, origin, header }: Call): string => {
  const who = header === undefined ? '' : ` -H "${header[0]}: ${header[1]('$SOUK_KEY')}"`;
  return `curl -s -H 'content-type: application/json'${who} -d ${quoted(JSON.stringify(request))} ${origin}/${rpc.service.typeName}/${rpc.method.name}`;
};

const python = ({ rpc, request, origin, header }: Call): string => {
  const { protocol, host, port } = new URL(origin);
  const address = port === '' ? `${host}:${protocol === 'https:' ? 443 : 80}` : host;
  const file = rpc.method.input.file.name;
  const folder = file.split('/').slice(0, -1).join('.');
  const module = `${file.split('/').at(-1)}_pb2`;
  // A quotation mark would end the text; JSON has another way to write it.
  const json = JSON.stringify(request, null, 2).replaceAll("'", '\\u0027');
  const channel = protocol === 'https:' ? `grpc.secure_channel("${address}", grpc.ssl_channel_credentials())` : `grpc.insecure_channel("${address}")`;
  const who = header === undefined ? '' : `, metadata=[("${header[0]}", ${header[1]('{os.environ[\'SOUK_KEY\']}').replace(/^(.*)$/, 'f"$1"')})]`;
  return `${header === undefined ? '' : 'import os\n\n'}import grpc
from google.protobuf import json_format

from ${folder} import ${module}, ${module}_grpc

REQUEST = r'''
${json}
'''

with ${channel} as channel:
    service = ${module}_grpc.${rpc.service.name}Stub(channel)
    request = json_format.Parse(REQUEST, ${module}.${rpc.method.input.name}())
    print(service.${rpc.method.name}(request, timeout=10${who}))
`;
};

const typescript = ({ rpc, request, origin, header }: Call): string => {
  const { service, method } = rpc;
  const options = header === undefined ? '' : `, { headers: { '${header[0]}': ${'`'}${header[1]('${process.env.SOUK_KEY}')}${'`'} } }`;
  return `import { fromJson } from '@bufbuild/protobuf';
import { createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-web';

import { ${service.name}, ${method.input.name}Schema } from './${method.input.file.name}_pb.js';

const service = createClient(${service.name}, createConnectTransport({ baseUrl: '${origin}' }));
const request = fromJson(${method.input.name}Schema, ${indented(JSON.stringify(request, null, 2), '')});
console.log(await service.${method.localName}(request${options}));
`;
};

const MAKE: Record<Program, (call: Call) => string> = { grpcurl, curl, Python: python, TypeScript: typescript };

const header = (): Call['header'] => {
  const own = credentials.value;
  if (own === undefined) return undefined;
  return own.kind === 'key' ? ['x-api-key', (key) => key] : ['authorization', (key) => `Bearer ${key}`];
};

/** `program` is the one that is shown. */
export const Calls = ({ rpc, request, program }: { rpc: Rpc; request: JsonObject; program: string }) => {
  const [copied, setCopied] = useState<string | undefined>(undefined);
  const shown = PROGRAMS.find((one) => one === program) ?? 'grpcurl';
  const who = header();
  const code = MAKE[shown]({ rpc, request, origin: location.origin, header: who });
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(code);
      setCopied(text('copied'));
    } catch {
      const place = document.getElementById('same-call');
      if (place !== null) getSelection()?.selectAllChildren(place);
      setCopied(text('uncopied'));
    }
  };
  return (
    <section aria-labelledby="calls">
      <h2 id="calls">{text('title')}</h2>
      <div class="row" role="radiogroup" aria-labelledby="calls">
        {PROGRAMS.map((one) => (
          <label class="check" key={one}>
            <input
              type="radio"
              name="program"
              checked={one === shown}
              onChange={() => {
                setCopied(undefined);
                change({ as: one === 'grpcurl' ? '' : one });
              }}
            />
            {one}
          </label>
        ))}
        <button type="button" onClick={() => void copy()}>
          {text('copy')}
        </button>
        <span role="status">{copied}</span>
      </div>
      <pre id="same-call" class="same-call" tabIndex={0}>
        {code}
      </pre>
      {(shown === 'Python' || shown === 'TypeScript') && <p class="quiet">{text('generated')}</p>}
      {who !== undefined && <p class="quiet">{text('key')}</p>}
    </section>
  );
};
