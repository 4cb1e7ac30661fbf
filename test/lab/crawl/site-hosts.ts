/** The loopback addresses of the benchmark's sites: each is a host of its own. */
const range = (prefix: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}.${index + 1}`);

export const goodHosts: readonly string[] = [...range("127.0.1", 250), ...range("127.0.2", 250)];
