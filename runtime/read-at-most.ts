/** Reads the body of a response. @throws the error of `tooLong` beyond the limit, which closes the connection */
export async function readAtMost(
  { body }: Response,
  { mostBytes, tooLong }: { mostBytes: number; tooLong: () => Error },
): Promise<Buffer<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    // Leaving the loop closes the connection.
    if (bytes > mostBytes) throw tooLong();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
