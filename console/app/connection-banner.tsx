import { Alert } from '@mantine/core';
import { WifiOff } from 'lucide-react';
import { shellText } from '../text/app.ts';
import { useIsOffline } from './live-events.ts';

/** Shown while the stream of live events is interrupted. */
export function ConnectionBanner() {
  const isOffline = useIsOffline();
  if (!isOffline) return null;
  return (
    <Alert color="orange" mb="md" role="status" icon={<WifiOff size={18} />}>
      {shellText.offline}
    </Alert>
  );
}
