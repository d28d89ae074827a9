// Stored hashes that other implementations made of one password: Django 5, passlib 1.7, Werkzeug 3,
// libxcrypt, Better Auth 1.7 and firebase-scrypt 2.2; some are put together from Node's and
// Python's primitives, by the documented layouts.

export const vectorPassword = 'correct horse battery st\u00e4ple'

/** The project of Firebase's own example. */
export const firebaseExample = {
  FIREBASE_SIGNER_KEY: 'jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==',
  FIREBASE_SALT_SEPARATOR: 'Bw==',
  password: 'user1password',
  storedHash:
    '$firebase-scrypt$ln=14,r=8$42xEC+ixf3L2lw==$lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==',
}

/** By its origin, the label in metrics, and the stored hash. */
export const vectors: [origin: string, label: string, storedHash: string][] = [
  [
    'Django pbkdf2_sha256',
    'pbkdf2',
    'pbkdf2_sha256$1000$seasalt2seasalt2$t2/shgEi7b7+O/eshudW3371UaAxJY89E6tnVT5CcgE=',
  ],
  ['Django pbkdf2_sha1', 'pbkdf2', 'pbkdf2_sha1$1000$seasalt2seasalt2$1HFOlIrk0dVvi4AeXICK7EBL84A='],
  [
    'Django scrypt',
    'scrypt',
    'scrypt$1024$seasalt2seasalt2$8$5$25IlDmGJenHYe03h9n4JtRo2mV5Z5+dzI7yIGYH7X4gL/avoCw9CA4CH7OFIU0gb8L+NVIWGsDKU1P7w8bqxkw==',
  ],
  [
    'Django argon2',
    'argon2id',
    'argon2$argon2id$v=19$m=1024,t=1,p=1$c2Vhc2FsdDJzZWFzYWx0Mg$Af3+jP9mSF0WHFQAHxP1SQ4q5gH4v6+OTDdOYIkvt7g',
  ],
  ['Django bcrypt_sha256', 'bcrypt', 'bcrypt_sha256$$2b$04$7hMjQBDBm4mog.y2fSu7kO/XjZUr7Ro/Tg40l3rKnqJI3CUqBRewG'],
  ['Django bcrypt', 'bcrypt', 'bcrypt$$2b$04$U3FsOFeL44dEPp8pGzOOyuRB6P6KQsG0EM2OLWs7..AA7aUFLWlm2'],
  ['passlib pbkdf2_sha1', 'pbkdf2', '$pbkdf2$1000$fo/x/h.jdO5da20tZQzh3A$b14dd9p/OwhNs7Li0XvwnDtINGQ'],
  [
    'passlib pbkdf2_sha256',
    'pbkdf2',
    '$pbkdf2-sha256$1000$x7i3lrJW6j1HKAUgxBjDOA$JPJwinM5UmtXJ5Unzm9ZAzMtlNt.Sl7T500fdZiz22s',
  ],
  [
    'passlib pbkdf2_sha512',
    'pbkdf2',
    '$pbkdf2-sha512$1000$DgGAEKJUCsHYGwNgbA2hFA$EOXVG1GTBgwFMB.nl91zzX1Kix1GC.Hmk1qimG8BJYqSNsBecXSO59LhDsnAX3cPQufZvHy.a8VZ3FZtqAtGiw',
  ],
  [
    'passlib scrypt',
    'scrypt',
    '$scrypt$ln=10,r=8,p=1$yDlHyLk3hnCu9X5vbe29Nw$RTu7eDn2edW4J/tWMG4eCMDlRNVax755ge9R0C9Wp0Y',
  ],
  [
    'passlib bcrypt_sha256 v2',
    'bcrypt',
    '$bcrypt-sha256$v=2,t=2b,r=4$eUDAcFR4kHvHOIOuP1XqL.$9F3slgXFmGHXhY0QpJGUpSJwVFtZiRK',
  ],
  ['passlib bcrypt_sha256 v1', 'bcrypt', '$bcrypt-sha256$2b,4$VMM8A0i9N/1w5DLpEwajte$Ou27PzqdoucQ6OBv9XJ6n2FRsJJRYs.'],
  [
    'passlib argon2',
    'argon2id',
    '$argon2id$v=19$m=1024,t=1,p=1$qvVeS0mpda611lqrlTImJA$vuHmHctnUCO6wcwqysubXXlCfs5QYpefStKlkO/qonM',
  ],
  ['passlib scram of SHA-1 alone', 'pbkdf2', '$scram$1000$cI6R0tobo/R.j5Ey$sha-1=1lR6GcLVCAz28i/BQ16usWMFW2Q'],
  [
    'passlib scram of other digests',
    'pbkdf2',
    '$scram$1000$p7SWslbqfc95L.Uc$sha-1=L/gCrzJdWLkal.9cObaZiMEPtF4,sha-256=SsQ9ou2CuaTzNNyfk.l.06vukQyzKiiL.Wawc1w8Yss,sha-384=aIjYACmdGnkXdOP3yhfdrcqQYsZIQ9aF0zUIW.x/GqyNbAHJaaFA9.ZPp76LN1Tj',
  ],
  [
    'Werkzeug pbkdf2 of SHA-224',
    'pbkdf2',
    'pbkdf2:sha224:1000$HZYBWTrzkXrEswqA$a39bd50ad4442793e89b3c2346fd108d07d3fa3eda968bfbb5881e98',
  ],
  [
    'Werkzeug pbkdf2 of SHA-384',
    'pbkdf2',
    'pbkdf2:sha384:1000$lpXNCpY3kEK26npo$6ade1ee4a2a2c92addbbbac6e30f7dfd2941ca55782fec30112149d74a770c9d88fa3ffe6b2cdc4cd394d30c00ae7a8d',
  ],
  ['passlib ldap_hex_sha1', 'digest', '{SHA}18b05744640237f098309183cdc9275a04ddacdd'],
  ['passlib ldap_hex_md5', 'digest', '{MD5}12307c065041e1cd98dae8d2b5be878f'],
  ['passlib ldap_salted_sha1', 'digest', '{SSHA}vQT8YH9l7bJFBGqlEFYKDBEpr8AupdT6'],
  [
    'passlib ldap_salted_sha512',
    'digest',
    '{SSHA512}l9XDpMB88oZ3jnBuwCR1ETt3+0OUk1rSGRCN0gFRjs4Xdp8Yu/LPewoID/nIyD7ePAjUfeNIHSqw5ogEyzPeB4hRKuU8ByDE',
  ],
  ['passlib ldap_salted_sha256', 'digest', '{SSHA256}ieTafwyGK8804VcwY1xM1intCHSHXa+T04/cam7+nn5Ya02p9f4fow=='],
  [
    'Werkzeug pbkdf2',
    'pbkdf2',
    'pbkdf2:sha256:1000$9qbUWmAhSZCxEDIT$a4249919ac864e3586ab583a62abde882b5bacc3ff3a88d26c858d39001cdfbd',
  ],
  [
    'Werkzeug scrypt',
    'scrypt',
    'scrypt:1024:8:1$9vZS5BQD0gL9KzmQ$ce0bc5d645521a753316c03388c065099b10070ae92a10fb223223596c7eeec212d1666c311158193b54ebd91f54987439e3a10810f72cdbac2f2cc3bcc4fbdb',
  ],
  [
    "Node's salt:key",
    'scrypt',
    '00b95266d9a741d790e291aac856d4b5:1ebd533526f0cf0d75fe81f9860fa2deb0f4cb3c11869e381b50dc55585cfd8e2e546e0bcb838ef77dab80fe46b101e6b3db65cdc8e81d4a138980bd979a10e9',
  ],
  [
    'ASP.NET Core Identity 3',
    'pbkdf2',
    'AQAAAAEAAAPoAAAAEFawUJaw++J/k+o3ZP7xE+tEIRs4CQfghhMA9FyVYWH10lfp0Dfnlh6Xbp+An3sQWw==',
  ],
  ['ASP.NET Identity 2', 'pbkdf2', 'AFawUJaw++J/k+o3ZP7xE+ubVZkAYUVhgfHbskjwQt1SYRklIwzqObh+LORGMaKKCg=='],
  [
    'PHC pbkdf2',
    'pbkdf2',
    '$pbkdf2-sha512$i=1000$L3tzqFijwZWWCWkFl/0D2Q$KDIN8g1Pb4rCFspNgbrZ6h2bs1ixFzab5DlS5FVFEUtIINhiRzdS0jhzCID2SuOfXgQm/+0jSM4kctIeasgpMg',
  ],
  ['WordPress 6.8', 'bcrypt', '$wp$2y$04$zzstPAGqCtPCWTcSg9slXOx07SE2VW5GmABE9iO2SiWPklVNy6tuq'],
  ['passlib sha256_crypt', 'sha-crypt', '$5$rounds=1000$DrjG8nt0kxMz2Bjd$ef0tO4DUdFpWNC5vCQYk1dkaXlyv2pg41CSVbQxgcGC'],
  [
    'passlib sha512_crypt',
    'sha-crypt',
    '$6$OLcFvD35TcAiHAvL$sXlhbfxj3qgvnpDJdVZ9K6CBH56mYv8lDPp9EZbiSqBR3Lxg6IEzAjQt2C6QjrxJLO2Ko.kfK6887jjA/v1Oc/',
  ],
  ['libxcrypt $5$ with a short salt', 'sha-crypt', '$5$rounds=1500$short$id1QRN21NUkP/ueOcVFhLM8rkVupluL6cb7qWnMlFB2'],
  [
    'libxcrypt $6$',
    'sha-crypt',
    '$6$saltsaltsaltsalt$gv5fuvHDP4ZPLAYfnLnrCaSUyCRH/A4pE/dGyqFITGj0jdOsAIcC.XzRjRNXqElXGVwr9hy39bHaOW/Q.Sn85/',
  ],
  ['passlib phpass', 'phpass', '$P$7H7PbiuCkOGBVXCpuNTj6WM0OjsIW90'],
  ['passlib phpass of phpBB', 'phpass', '$H$5bPUCV53GAI/aaejqeEGG8BnTnMySR1'],
  ['libxcrypt $y$', 'yescrypt', '$y$j75$saltsaltsaltsalt$xneyQc/3G4xrbwOgmOaf8EiaUpJcw7MUl/9VVQth.21'],
  ['libxcrypt $y$ of a short salt', 'yescrypt', '$y$j85$abcd$nHYDVsKiKqKjlIoEnxG4wTDgVp.0IBjEwIsP20Pclc2'],
  ['libxcrypt $2x$', 'bcrypt', '$2x$04$CCCCCCCCCCCCCCCCCCCCC.G.u97GAZ0JegQDb9PHeKKOEQ02.xgJu'],
  ['libxcrypt $2x$ of another salt and cost', 'bcrypt', '$2x$05$abcdefghijklmnopqrstuuLb41.1k/H9YIPR2MZqOIZuxLe4bFviy'],
  [
    'Better Auth',
    'scrypt',
    '0b55337cf2488136bd9ed1394fa5b619:e7b5ecb7c7330e15d97fbd0ff837c79371921f1f7803961f69d8d7cbfd29ef3def28669d2bf39961984effc997e4a17dbad7660121564bf90ac7cd39653ac84c',
  ],
  [
    'Firebase',
    'scrypt',
    '$firebase-scrypt$ln=14,r=8$42xEC+ixf3L2lw==$hVrC8nE6VntPgdbk/CFudA4HV0B/vF6CP3v6bhUQdd3AY+Tt9xEcMx4AkrlKhmxBglF/kZ8FN5OWyWHfvLW80Q==',
  ],
  ['Drupal 7', 'phpass', '$S$8seasalt2yB4ZmC.oufdQXiIeX01IbvtdDkSElaaJVV3TSe4bBkn'],
]

const OF_ASCII = '$2x$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'
/** What matches bcrypt 2x, which extended bytes beyond ASCII with their sign, and what does not */
export const extendedBytes: [password: string, storedHash: string, matches: boolean][] = [
  ['\u00ff', '$2x$04$CCCCCCCCCCCCCCCCCCCCC.0BMvexj9TifIzCqMH/2rpYmIjwMTvt2', true],
  ['\u00ff', '$2y$04$CCCCCCCCCCCCCCCCCCCCC.0BMvexj9TifIzCqMH/2rpYmIjwMTvt2', false],
  ['U*U', OF_ASCII, true],
  ['U*U\0', OF_ASCII, false],
  ['', '$2x$04$CCCCCCCCCCCCCCCCCCCCC.Cg0ly9t/KVBCBYYDfOmZKwry9JuXClC', true],
  ['\0', '$2x$04$CCCCCCCCCCCCCCCCCCCCC.Cg0ly9t/KVBCBYYDfOmZKwry9JuXClC', false],
]
