/** Calls of the server: clients generated from the contract, by Connect, at the page's own address. */
import type { DescService } from '@bufbuild/protobuf';
import type { Client, Interceptor } from '@connectrpc/connect';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-web';

import { ask, headers } from './session';

/** How long a call may take, in milliseconds. Streams have no end. */
export const PATIENCE_MS = 30_000;

/**
 * The error of a call as a ConnectError. A TypeError of fetch, which means no response or half of one, becomes UNAVAILABLE; errors of the
 * page's own code stay as they are. UNAUTHENTICATED opens the sign-in.
 */
const told = (error: unknown): ConnectError => {
  const known = ConnectError.from(error);
  if (known.code === Code.Unauthenticated) ask();
  const unreached = known.code === Code.Unknown && known.cause instanceof TypeError;
  return unreached ? new ConnectError(known.rawMessage, Code.Unavailable, undefined, undefined, known.cause) : known;
};

async function* toldOf<Message>(messages: AsyncIterable<Message>): AsyncIterable<Message> {
  try {
    yield* messages;
  } catch (error) {
    throw told(error);
  }
}

const whoCalls: Interceptor = (next) => async (request) => {
  for (const [name, value] of Object.entries(headers())) request.header.set(name, value);
  try {
    const answer = await next(request);
    return answer.stream ? { ...answer, message: toldOf(answer.message) } : answer;
  } catch (error) {
    throw told(error);
  }
};

const transport = createConnectTransport({
  baseUrl: location.origin,
  useBinaryFormat: true,
  interceptors: [whoCalls],
});

/** A client of a service of the contract. */
export const client = <Service extends DescService>(service: Service): Client<Service> => createClient(service, transport);
