import { api, dataOf } from '../app/api.ts';
import { FormDialog } from '../parts/form-dialog.tsx';
import { notifyDone } from '../parts/notify.ts';
import { ruleText as text } from '../text/numbers.ts';
import { ruleOf } from './inbound-fields.ts';
import { InboundForm } from './inbound-form.tsx';
import { type RentedNumber, refreshNumbers } from './queries.ts';

interface InboundDialogProps {
  number: RentedNumber;
  isOpen: boolean;
  onClose: () => void;
}

export function InboundDialog({ number: { e164, inbound }, isOpen, onClose }: InboundDialogProps) {
  const save = async (fields: Record<string, string>) => {
    await dataOf(api.PUT('/dialer/numbers/{e164}/inbound', { params: { path: { e164 } }, body: ruleOf(fields) }));
    await refreshNumbers();
    notifyDone(text.saved(e164));
  };
  return (
    <FormDialog title={text.title(e164)} submitLabel={text.submit} isOpen={isOpen} onClose={onClose} onSubmit={save}>
      <InboundForm rule={inbound} />
    </FormDialog>
  );
}
