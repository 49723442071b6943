/**
 * Asks the test run (`test/global-setup.ts`) for something that test files share. Waits until it exists.
 * @throws Error why it could not be created
 */
export async function askTestRun(path: '/postgres' | '/s3' | '/console'): Promise<string> {
  const answer = await fetch(`${process.env.TANDEM_TEST_RUN}${path}`);
  const text = await answer.text();
  if (!answer.ok) throw new Error(`The test run cannot provide ${path}: ${text}`);
  return text;
}
