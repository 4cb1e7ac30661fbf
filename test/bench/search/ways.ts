/** The ways of looking for pages that are held against each other. */
export const ways = ["former", "database"] as const;
export type Way = (typeof ways)[number];
