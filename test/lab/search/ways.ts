/** The ways of looking for pages that are held against each other. */
export const ways = ["database", "index"] as const;
export type Way = (typeof ways)[number];
