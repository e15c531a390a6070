select c.site_id as "siteId", c.signature_hash as "signatureHash"
from public.calls c
order by c.id;
