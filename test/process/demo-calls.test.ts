import { expect, it } from 'vitest';
import { ApiError } from '../../bin/cli/api-client.ts';
import { keepCalling } from '../../bin/demo/keep-calling.ts';

it('places further calls after refusals of a busy server, until another error', async () => {
  const results = [null, 429, null, 503, null, 402, null];
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
  await expect(calling).rejects.toThrow('refused with 402');
  const [call, pause] = ['call', 'pause'];
  const refused = (status: number) => [call, `refused with ${status}`, pause];
  expect(happened).toEqual([call, pause, ...refused(429), call, pause, ...refused(503), call, pause, call]);
});
