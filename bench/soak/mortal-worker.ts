/** A media worker that dies after a while, as from a fault or the kernel's OOM killer. */
import '../../media/worker.ts';

const lifeS = Number(process.env.SOAK_WORKER_LIFE_S ?? 0);
// Spread, so that not all die at once.
if (lifeS > 0) setTimeout(() => process.exit(1), 1000 * lifeS * (0.75 + 0.5 * Math.random())).unref();
