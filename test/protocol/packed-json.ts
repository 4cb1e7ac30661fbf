/** Arbitrary bytes as the JSON of a packed message, which no honest crawler sends. */
export const packedJson = (json: Buffer | string) => ({
  numbers: Buffer.from([0, 0]),
  text: Buffer.concat([Buffer.from("\nj\n"), Buffer.from(json)]),
});
