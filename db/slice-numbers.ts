/** Numbers that slices give (leases, changes, checks) are of one slice each: those of slice n start at n × 2^40. */
export const numbersPerSlice = 2n ** 40n;

/**
 * Where the database went back, slice 0 goes on with numbers that are times (coordinator/journal/epoch), which are larger than
 * this since 2001: no slice has numbers there.
 */
const firstOfTimes = 10n ** 15n;

export const largestSliceNumber = Number(firstOfTimes / numbersPerSlice) - 1;

/** Of a number that a slice gave. */
export const sliceOfNumber = (number: string | bigint): number =>
  BigInt(number) >= firstOfTimes ? 0 : Number(BigInt(number) / numbersPerSlice);
