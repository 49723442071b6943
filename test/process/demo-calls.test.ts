import { expect, it } from 'vitest';
import { ApiError } from '../../bin/cli/api-client.ts';
import { keepCalling } from '../../bin/demo/keep-calling.ts';

it('places further calls after refusals, until the API key is refused', async () => {
  const results = [null, 429, null, 503, null, 402, null, 401, null];
  const happened: string[] = [];
  const calling = keepCalling({
    async oneCall() {
      const status = results.shift();
      happened.push('call');
      if (status) throw new ApiError('CODE', `refused with ${status}`, { status });
    },
    async pause() {
      happened.push('pause');
    },
    onRefusal: ({ message }) => happened.push(message),
  });
  await expect(calling).rejects.toThrow('refused with 401');
  const [call, pause] = ['call', 'pause'];
  const refused = (status: number) => [call, `refused with ${status}`, pause];
  const again = [call, pause];
  expect(happened).toEqual([
    ...again,
    ...refused(429),
    ...again,
    ...refused(503),
    ...again,
    ...refused(402),
    ...again,
    call,
  ]);
});
