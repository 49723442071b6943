/** Counts event loop turns until `count` is called. */
export function countTurns(): { count(): Promise<number> } {
  let turns = 0;
  let isOver = false;
  const others = (async () => {
    while (!isOver) {
      await new Promise((resolve) => setImmediate(resolve));
      turns += 1;
    }
  })();
  return {
    async count() {
      isOver = true;
      await others;
      return turns;
    },
  };
}
