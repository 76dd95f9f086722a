/** Calls of the server: clients generated from the contract, by Connect, at the page's own address. */
import type { DescService } from '@bufbuild/protobuf';
import type { Client, Interceptor } from '@connectrpc/connect';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-web';

import { ask, headers } from './session';

/** How long a call may take, in milliseconds. Streams have no end. */
export const PATIENCE_MS = 30_000;

const whoCalls: Interceptor = (next) => async (request) => {
  for (const [name, value] of Object.entries(headers())) request.header.set(name, value);
  try {
    return await next(request);
  } catch (error) {
    if (ConnectError.from(error).code === Code.Unauthenticated) ask();
    throw error;
  }
};

const transport = createConnectTransport({
  baseUrl: location.origin,
  useBinaryFormat: true,
  interceptors: [whoCalls],
});

/** A client of a service of the contract. */
export const client = <Service extends DescService>(service: Service): Client<Service> => createClient(service, transport);
