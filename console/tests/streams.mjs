// Streams as a server answers them by Connect, which tests answer in its place.

/** The answer of a stream that ends at once, with an error where there is one: `{ code, message, details }` as Connect writes them. */
export const ended = (error) => {
  const end = Buffer.from(JSON.stringify(error === undefined ? {} : { error }));
  const head = Buffer.alloc(5);
  head.writeUInt8(2, 0);
  head.writeUInt32BE(end.length, 1);
  return { contentType: 'application/connect+proto', body: Buffer.concat([head, end]) };
};

/** The answer of a stream that can't be gone on with, for a reason as the gateway tells it. */
export const refused = (reason) =>
  ended({ code: 'out_of_range', message: 'not after this', details: [{ type: 'google.rpc.ErrorInfo', value: '', debug: { reason } }] });

/** The sequence after which the request of a stream asks; undefined from now on. */
export const after = (request) => {
  const message = request.postDataBuffer().subarray(5);
  // Its only field, as a varint.
  return message.length === 0 ? undefined : message.subarray(1).reduce((sum, byte, place) => sum + (byte & 0x7f) * 2 ** (7 * place), 0);
};

/** Whether the request of a stream has a message with nothing set. */
export const isEmpty = (request) => request.postDataBuffer().length === 5;
