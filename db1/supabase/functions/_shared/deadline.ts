/** What the work gives, or `late()` thrown where it takes longer. The work itself goes on; whoever started it ends it. */
export async function inTime<Result>(
  ms: number,
  work: Result | Promise<Result>,
  late: () => Error,
): Promise<Result> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), ms);
  });
  try {
    return await Promise.race([work, deadline]);
  } finally {
    clearTimeout(timer);
  }
}
