import type { LimitSettings, Slot, SlotKind } from '../../storage/limits/limits.ts';
import type { LoginAttempt } from '../../storage/limits/login-throttle.ts';
import { openLimits } from '../../storage/limits/open-limits.ts';

/** Counts and holds slots on IPC commands until killed or disconnected. */
export type LimitsCommand =
  | { acquire: { userId: number; kind: SlotKind } }
  | { releaseOne: true }
  | { address: string }
  | { login: LoginAttempt; forgive?: true };
export type LimitsAnswer = { granted: true } | { refused: string } | { exceeded: boolean; remaining: number };

const settings = JSON.parse(process.argv[2] ?? '{}') as LimitSettings & { redisUrl: string; namespace: string };
const limits = await openLimits({ ...settings, logger: { info: () => {}, warn: () => process.exit(3) } });
const slots: Slot[] = [];

process.on('message', async (command: LimitsCommand) => process.send?.(await answer(command)));
process.on('disconnect', () => process.exit());
process.send?.('ready');

async function answer(command: LimitsCommand): Promise<LimitsAnswer> {
  if ('address' in command) {
    const { exceeded, remaining } = await limits.consumeAddress(command.address);
    return { exceeded, remaining };
  }
  if ('login' in command) {
    try {
      await limits.logins.attempt(command.login);
      if (command.forgive) await limits.logins.forgive(command.login);
      return { granted: true };
    } catch (error) {
      return { refused: (error as { code: string }).code };
    }
  }
  if ('releaseOne' in command) {
    await slots.pop()?.release();
    return { granted: true };
  }
  try {
    slots.push(await limits.acquireSlot(command.acquire));
    return { granted: true };
  } catch (error) {
    return { refused: (error as { code: string }).code };
  }
}
