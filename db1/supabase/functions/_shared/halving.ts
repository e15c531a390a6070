// A set that fails as a whole is tried by halves, until the member that spoils it stands alone.

export interface Halving<Member> {
  /** Does the whole set, or throws and has done nothing of it. */
  work(members: readonly Member[]): Promise<void>;
  /** True for a failure that one member may have caused. */
  mayBeOneMembers(error: unknown): boolean;
  /** The end of members that failed: one that stands alone, or all of them where halving cannot help. */
  fail(members: readonly Member[], error: unknown): void | Promise<void>;
}

export async function byHalves<Member>(members: readonly Member[], halving: Halving<Member>): Promise<void> {
  try {
    await halving.work(members);
  } catch (error) {
    if (members.length < 2 || !halving.mayBeOneMembers(error)) {
      await halving.fail(members, error);
      return;
    }
    const half = members.length >> 1;
    await byHalves(members.slice(0, half), halving);
    await byHalves(members.slice(half), halving);
  }
}
