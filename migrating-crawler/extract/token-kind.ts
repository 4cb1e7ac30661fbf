/** For which dictionary a token is: for ASCII letters, for other words, or for none, to be taken as it is. */
export const asciiWord = 0;
export const anyWord = 1;
export const asItIs = 2;
export type TokenKind = typeof asciiWord | typeof anyWord | typeof asItIs;
