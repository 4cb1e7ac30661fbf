/** `npm run test:long`, each night, has every journey in full; `npm test` has a short seed of each. */
export const isLong = process.env.NEARCRAWL_LONG === "1";

export const longOr = <Value>(full: Value, short: Value): Value => (isLong ? full : short);
