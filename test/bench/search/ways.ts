/** The ways of looking for pages that are held against each other. */
export const ways = ["former", "database", "index"] as const;
export type Way = (typeof ways)[number];
