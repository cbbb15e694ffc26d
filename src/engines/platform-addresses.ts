/**
 * Addresses of a cloud for its own machines: metadata with credentials, name service, agents. Some lie in ranges that
 * are refused anyway; they are listed all the same, so that this is the one place to look them up.
 */
export const PLATFORM_ADDRESSES: readonly { cidr: string; what: string; source: string }[] = [
  {
    cidr: '169.254.0.0/16',
    what: 'metadata of AWS, Google Cloud, Azure, DigitalOcean, Hetzner, OpenStack, Oracle (169.254.169.254); credentials of AWS ECS and EKS (169.254.170.2, .23), Scaleway (169.254.42.42), Tencent (169.254.0.23)',
    source: 'https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html',
  },
  {
    cidr: '168.63.129.16/32',
    what: 'Azure: agents of a virtual machine (WireServer), DNS, health probes',
    source: 'https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16',
  },
  {
    cidr: '192.0.0.192/32',
    what: 'Oracle Cloud Infrastructure Classic: metadata',
    source: 'https://docs.oracle.com/en/cloud/iaas/compute-iaas-cloud/stcsg/retrieving-instance-metadata.html',
  },
  {
    cidr: '100.100.100.200/32',
    what: 'Alibaba Cloud: metadata',
    source: 'https://www.alibabacloud.com/help/en/ecs/user-guide/view-instance-metadata',
  },
  {
    cidr: '161.26.0.0/16',
    what: 'IBM Cloud: DNS, time, and package mirrors of its own network',
    source: 'https://cloud.ibm.com/docs/vpc?topic=vpc-service-endpoints-for-vpc',
  },
  {
    cidr: '166.8.0.0/14',
    what: 'IBM Cloud: private endpoints of its services',
    source: 'https://cloud.ibm.com/docs/vpc?topic=vpc-service-endpoints-for-vpc',
  },
  {
    cidr: '199.36.153.4/30',
    what: 'Google Cloud: restricted.googleapis.com, which a virtual network alone reaches',
    source: 'https://cloud.google.com/vpc/docs/configure-private-google-access',
  },
  {
    cidr: '199.36.153.8/30',
    what: 'Google Cloud: private.googleapis.com, which a virtual network alone reaches',
    source: 'https://cloud.google.com/vpc/docs/configure-private-google-access',
  },
  {
    cidr: 'fd00:ec2::254/128',
    what: 'AWS: metadata over IPv6',
    source: 'https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html',
  },
  {
    cidr: 'fd20:ce::254/128',
    what: 'Google Cloud: metadata over IPv6',
    source: 'https://cloud.google.com/compute/docs/metadata/overview',
  },
]
