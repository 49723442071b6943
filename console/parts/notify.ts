import { notifications } from '@mantine/notifications';

/** Confirms an action. */
export function notifyDone(message: string): void {
  notifications.show({ message, color: 'green' });
}

/** Reports the failure of an action without a dialog of its own. */
export function notifyFailed(error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  notifications.show({ message, color: 'red', autoClose: 10_000 });
}
