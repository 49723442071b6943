/** Placeholder for a port that a machine declares. `actors/` replaces it with `machine.provide()`. */
export function notProvided(port: string): () => never {
  return () => {
    throw new Error(`The port "${port}" was not provided.`);
  };
}
