/** The body of every port a machine declares but does not own: `actors/` replaces it with `machine.provide()`. */
export function notProvided(port: string): () => never {
  return () => {
    throw new Error(`The port "${port}" was not provided.`);
  };
}
