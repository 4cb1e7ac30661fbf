/** Numbers that slices give (leases, changes, checks) are of one slice each: those of slice n start at n × 2^40. */
export const numbersPerSlice = 2n ** 40n;

/** Of a number that a slice gave. */
export const sliceOfNumber = (number: string | bigint): number => Number(BigInt(number) / numbersPerSlice);
