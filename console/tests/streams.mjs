// Streams as a server answers them by Connect, which tests answer in its place.

/** The answer of a stream that ends at once, with an error where there is one: `{ code, message, details }` as Connect writes them. */
export const ended = (error) => {
  const end = Buffer.from(JSON.stringify(error === undefined ? {} : { error }));
  const head = Buffer.alloc(5);
  head.writeUInt8(2, 0);
  head.writeUInt32BE(end.length, 1);
  return { contentType: 'application/connect+proto', body: Buffer.concat([head, end]) };
};

/** Whether the request of a stream has a message with nothing set. */
export const isEmpty = (request) => request.postDataBuffer().length === 5;
